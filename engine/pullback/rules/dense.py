"""dense_bias_act(w, x[, b]) = act(w @ x + b): one array instead of three. See `pullback.rules.bias_act`."""

from typing import Any

import numpy as np

from pullback.core.cases import away_from, cases, normal
from pullback.rules import activations, trigonometric
from pullback.rules.bias_act import BilinearLayer
from pullback.rules.contractions import matmul


def column(b: Any, z_ndim: int) -> Any:
    """A bias of shape (out,) as a column beside a batch; others as they are."""
    return np.reshape(b, (*np.shape(b), 1)) if np.ndim(b) == 1 and z_ndim == 2 else b


class _DenseBiasAct(BilinearLayer):
    rule = matmul

    def placed(self, b: Any, z_ndim: int) -> Any:
        return column(b, z_ndim)


dense_bias_act = _DenseBiasAct("dense_bias_act")

for _act in (trigonometric.tanh, activations.sigmoid, activations.softplus, activations.identity):
    cases(dense_bias_act, normal(3, 4), normal(4, 2), normal(3, 1), act=_act)
cases(dense_bias_act, normal(3, 4), normal(4, 2), act=trigonometric.tanh, because="no bias is a case of its own")
cases(dense_bias_act, normal(3, 4), normal(4, 2), normal(3), act=trigonometric.tanh, because="a bias per output")
cases(dense_bias_act, normal(3, 4), normal(4), normal(3), act=trigonometric.tanh, because="one sample")
cases(dense_bias_act, away_from(0.0, 3, 1), away_from(0.0, 1, 2), act=activations.relu, because="the kink at 0")
