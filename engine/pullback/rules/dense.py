"""dense_bias_act(w, x[, b]) = act(w @ x + b): one array instead of three. See `pullback.rules.bias_act`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import away_from, cases, normal
from pullback.core.types import ArrayType
from pullback.rules import activations, trigonometric
from pullback.rules.bias_act import ActivatedLayer, Params
from pullback.rules.contractions import matmul


def column(b: Any, z_ndim: int) -> Any:
    """A bias of shape (out,) as a column beside a batch; others as they are."""
    return np.reshape(b, (*np.shape(b), 1)) if np.ndim(b) == 1 and z_ndim == 2 else b


class _DenseBiasAct(ActivatedLayer):
    def product(self, operands: Sequence[Any], params: Params) -> np.ndarray[Any, Any]:
        product: np.ndarray[Any, Any] = np.matmul(*operands)
        return product

    def product_type(self, types: Sequence[ArrayType], params: Params) -> ArrayType:
        return matmul.infer(*types)[0]

    def pull_product(
        self, needed: Sequence[bool], z_bar: Any, operands: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        return matmul.pull(needed, z_bar, None, operands, {})

    def push_product(self, tangents: Sequence[Any], operands: Sequence[Any], params: Params) -> Any:
        return None if all(tangent is None for tangent in tangents) else matmul.push(tangents, None, operands, {})

    def batch_product(self, operands: Sequence[Any], batched: Sequence[bool], params: Params) -> Any:
        return matmul.batch(operands, batched, {}) if any(batched) else matmul(*operands)

    def placed(self, b: Any, z_ndim: int) -> Any:
        return column(b, z_ndim)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return matmul.flops(types[:2], result) + 2 * result.size


dense_bias_act = _DenseBiasAct("dense_bias_act")

for _act in (trigonometric.tanh, activations.sigmoid, activations.softplus, activations.identity):
    cases(dense_bias_act, normal(3, 4), normal(4, 2), normal(3, 1), act=_act)
cases(dense_bias_act, normal(3, 4), normal(4, 2), act=trigonometric.tanh, because="no bias is a case of its own")
cases(dense_bias_act, normal(3, 4), normal(4, 2), normal(3), act=trigonometric.tanh, because="a bias per output")
cases(dense_bias_act, normal(3, 4), normal(4), normal(3), act=trigonometric.tanh, because="one sample")
cases(dense_bias_act, away_from(0.0, 3, 1), away_from(0.0, 1, 2), act=activations.relu, because="the kink at 0")
