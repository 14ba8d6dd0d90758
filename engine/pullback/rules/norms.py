"""The p-norm over axes, y = (sum |x|^p)^(1/p), for a finite p that is neither 0 nor 1.

dx -> sum Re(sign(x)^* dx) (|x| / y)^(p-1). At x = 0 a norm has a kink; there its derivative is taken as zero, the
smallest of its subgradients, so that a function which adds a norm of zero keeps its gradient; so it is where the squares
of x are too small for a float, and the norm that NumPy gives is zero. A second derivative there is refused
(`rules.quotients`). For p below 1 every element has a cusp at zero, and the same is done at each.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import away_from, cases, normal
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.rules.matrices import conjugate, is_complex, matrix_dtype, real, real_dtype
from pullback.rules.quotients import direction
from pullback.rules.reductions import reduced_shape


def _slope(x: Any, y: Any, p: float) -> Any:
    """The derivative by every element, for y with the reduced axes kept."""
    if p == 2:
        return direction(conjugate(x), y)
    if p > 1:
        return conjugate(np.sign(x)) * direction(np.abs(x), y) ** (p - 1)
    cusp = np.logical_or(x == 0, y == 0)
    ratio = np.where(cusp, 1, np.abs(x)) / np.where(y == 0, 1, y)
    return conjugate(np.sign(x)) * np.where(cusp, 0, ratio ** (p - 1))


class _PNorm(Primitive):
    """Parameters: p, axes (non-negative), keepdims."""

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        (x,) = operands
        p, axes, keepdims = params["p"], params["axes"], params["keepdims"]
        if p == 2:
            squares = np.square(x.real) + np.square(x.imag) if is_complex(x) else np.square(x)
            return np.sqrt(np.add.reduce(squares, axis=axes, keepdims=keepdims))
        return np.add.reduce(np.abs(x) ** p, axis=axes, keepdims=keepdims) ** (1 / p)

    def lower(self, x: Any, p: float, axes: tuple[int, ...], *, keepdims: bool) -> Any:
        if p != 2:
            return np.sum(np.abs(x) ** p, axis=axes, keepdims=keepdims) ** (1 / p)
        squares = np.square(np.real(x)) + np.square(np.imag(x)) if is_complex(x) else np.square(x)
        return np.sqrt(np.sum(squares, axis=axes, keepdims=keepdims))

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        dtype = real_dtype(matrix_dtype("norm", types[0]))
        return (ArrayType(reduced_shape(types[0].shape, params["axes"], keepdims=params["keepdims"]), dtype),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        (x,) = operands
        kept = reduced_shape(np.shape(x), params["axes"], keepdims=True)
        return (np.reshape(y_bar, kept) * _slope(x, np.reshape(y, kept), params["p"]),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        (x,) = operands
        kept = reduced_shape(np.shape(x), params["axes"], keepdims=True)
        moved = real(tangents[0] * _slope(x, np.reshape(y, kept), params["p"]))
        return np.sum(moved, axis=params["axes"], keepdims=params["keepdims"])

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return self(operands[0], **{**params, "axes": tuple(axis + 1 for axis in params["axes"])})

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return 2 * types[0].size


p_norm = _PNorm("p_norm")

cases(p_norm, normal(4), p=2.0, axes=(0,), keepdims=False)
cases(p_norm, normal(2, 3, 4), p=2.0, axes=(0, 2), keepdims=True)
cases(p_norm, away_from(0.0, 3, 4), p=3.0, axes=(1,), keepdims=False, because="a power leaves a kink at 0")
cases(p_norm, away_from(0.0, 3, 4), p=-1.5, axes=(0,), keepdims=True, because="a negative power")
