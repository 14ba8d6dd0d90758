"""dense_bias_act(w, x[, b]) = act(w @ x + b): one array instead of three.

Reference: `act(w @ x + b)` in primitives; every test runs on both. Saved for the pullback: w, x and the output, nothing
else, so it is only for activations whose derivative can be written from the output; `pullback.nn` composes the others.
Overwritten: the product w @ x, by the bias and then by the activation; it is the rule's own temporary and nobody else
can hold it. Orders and modes: any; push and pull are written in differentiable operations.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.cases import away_from, cases, normal
from pullback.ir.types import ArrayType
from pullback.kinds import Scalar, unbroadcast
from pullback.primitive import Primitive
from pullback.rules import activations, trigonometric
from pullback.rules.contractions import matmul


def column(b: Any, x_ndim: int) -> Any:
    """A bias of shape (out,) as a column beside a batch; others as they are."""
    return np.reshape(b, (*np.shape(b), 1)) if np.ndim(b) == 1 and x_ndim == 2 else b


def activate_in_place(act: Scalar, z: Any) -> Any:
    """Apply an activation into the array it was given."""
    if act.into is not None:
        act.into(z, z)
    else:
        z[...] = act.evaluate(z)
    return z


class _DenseBiasAct(Primitive):
    """Parameters: act, a Scalar whose derivative reads its output only."""

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        w, x, *bias = operands
        z = np.matmul(w, x)
        if not isinstance(z, np.ndarray):  # a single output unit on a single input
            return params["act"].evaluate(z + bias[0] if bias else z)
        if bias:
            b = column(bias[0], np.ndim(x))
            z = np.add(z, b, out=z) if np.result_type(z, b) == z.dtype else z + b
        return activate_in_place(params["act"], z)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        w, x, *bias = types
        (z,) = matmul.infer(w, x)
        if bias:
            shape = (*bias[0].shape, 1) if len(bias[0].shape) == 1 and len(x.shape) == 2 else bias[0].shape
            if np.broadcast_shapes(z.shape, shape) != z.shape:
                raise ValueError(f"dense_bias_act: a bias of shape {bias[0].shape} does not fit an output of {z.shape}")
            z = ArrayType(z.shape, np.result_type(z.dtype, bias[0].dtype))
        result: tuple[ArrayType, ...] = params["act"].infer(z)
        return result

    def pull(
        self,
        needed: Sequence[bool],
        y_bar: Any,
        y: Any,
        operands: Sequence[Any],
        params: dict[str, Any],
    ) -> Sequence[Any]:
        w, x, *bias = operands
        z_bar = params["act"].maps[0](y_bar, None, y)
        w_bar, x_bar = matmul.pull(needed[:2], z_bar, None, (w, x), {})
        if not bias:
            return (w_bar, x_bar)
        b_bar = None
        if needed[2]:
            b = bias[0]
            b_bar = np.reshape(unbroadcast(z_bar, np.shape(column(b, np.ndim(x))), b.dtype), np.shape(b))
        return (w_bar, x_bar, b_bar)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        w, x, *bias = operands
        dz = matmul.push(tangents[:2], y, (w, x), {})
        if bias and tangents[2] is not None:
            db = column(tangents[2], np.ndim(x))
            dz = np.broadcast_to(db, np.shape(y)) if dz is None else dz + db
        return params["act"].maps[0](dz, None, y)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return matmul.flops(types[:2], result) + 2 * result.size


dense_bias_act = _DenseBiasAct("dense_bias_act")

for _act in (trigonometric.tanh, activations.sigmoid, activations.softplus, activations.identity):
    cases(dense_bias_act, normal(3, 4), normal(4, 2), normal(3, 1), act=_act)
cases(dense_bias_act, normal(3, 4), normal(4, 2), act=trigonometric.tanh, because="no bias is a case of its own")
cases(dense_bias_act, normal(3, 4), normal(4, 2), normal(3), act=trigonometric.tanh, because="a bias per output")
cases(dense_bias_act, normal(3, 4), normal(4), normal(3), act=trigonometric.tanh, because="one sample")
cases(dense_bias_act, away_from(0.0, 3, 1), away_from(0.0, 1, 2), act=activations.relu, because="the kink at 0")
