"""Division where a derivative may not exist: by a norm, by singular values, by the gaps between eigenvalues.

`quotient(x, d)` is x / d; where d is zero it is zero if x is zero too, as for a derivative that is not needed, and
otherwise refused: the derivative of the caller's function does not exist there, and a NaN would only say so much later.
`direction(x, d)` is x / d, and zero where d is, whatever x is: the slope of a norm d, where it is zero or too small for the
squares of x. Its own derivative is refused there.
`inverse(d)` is 1 / d, and zero where d is; there its derivative is refused. `spread(x)` is the root of a variance: the
derivative of a standard deviation is taken as zero where nothing is spread out, the smallest of its subgradients.
`gaps(w)` has w_j - w_i at (i, j), where gaps within the rounding errors of a decomposition are zero, and ones on the
diagonal: what is divided by them has zeros there.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import away_from, cases, normal, positive
from pullback.core.constant_arrays import number
from pullback.core.kinds import Scalar
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.errors import DifferentiationError
from pullback.rules.diagonals import on_diagonal
from pullback.rules.matrices import MatrixFunction

_REFUSED = (
    "this derivative does not exist: it divides by zero (repeated eigenvalues or singular values, a singular "
    "value of zero, a second derivative of a norm or deviation at zero); if only the values are wanted use eigvalsh or svdvals"
)


def _divide(x: Any, d: Any) -> Any:
    zero = d == 0
    if np.any(zero & (x != 0)):
        raise DifferentiationError(_REFUSED)
    return x / np.where(zero, np.ones((), np.result_type(d)), d)


def _invert(d: Any) -> Any:
    zero = d == 0
    return np.where(zero, 0, 1 / np.where(zero, np.ones((), np.result_type(d)), d))


def _direct(x: Any, d: Any) -> Any:
    zero = d == 0
    return np.where(zero, 0, x / np.where(zero, 1, d))


def _gaps(w: Any) -> Any:
    difference = np.expand_dims(w, -2) - np.expand_dims(w, -1)
    size = np.max(np.abs(w), axis=-1, keepdims=True, initial=0)[..., None]
    resolved = np.abs(difference) > np.finfo(w.dtype).eps * np.shape(w)[-1] * size
    return difference * resolved + np.eye(np.shape(w)[-1], dtype=w.dtype)


def _gaps_steps(w: Any) -> Any:
    """The same with one array after the other, all of them computed from w."""
    size, dtype = np.shape(w)[-1], w.dtype
    difference = np.expand_dims(w, -2) - np.expand_dims(w, -1)
    largest = np.expand_dims(np.max(np.abs(w), axis=-1, keepdims=True), -1)
    resolved = np.abs(difference) > dtype.type(np.finfo(dtype).eps * size) * largest
    rank = np.ndim(w)
    ones = on_diagonal((w == w).astype(dtype), shape=(*np.shape(w), size), offset=0, axis1=rank - 1, axis2=rank)  # noqa: PLR0124
    return difference * resolved + ones


def _sum_by_index(v: Any) -> Any:
    return np.sum(v, axis=-2) - np.sum(v, axis=-1)


def _gaps_type(w: ArrayType) -> tuple[ArrayType, ...]:
    return (ArrayType((*w.shape, w.shape[-1]), w.dtype),)


def _push_gaps(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> Any:
    (dw,) = tangents
    return np.expand_dims(dw, -2) - np.expand_dims(dw, -1)


class _Quotient(Scalar):
    """Written with memory of the plan's: where the divisor is zero, where both are, and a divisor without zeros."""

    def scratch(self, *types: ArrayType, **params: Any) -> Sequence[ArrayType]:
        (y,) = self.infer(*types, **params)
        truth = np.dtype(bool)
        return (ArrayType(types[1].shape, truth), ArrayType(y.shape, truth), ArrayType((), truth), types[1])


def _write_quotient(out: Any, x: Any, d: Any, scratch: Sequence[Any]) -> None:
    zero, wrong, is_wrong, divisor = scratch
    if not issubclass(type(x), np.ndarray | np.generic):
        x = number(x, d.dtype)
    np.equal(d, number(0, d.dtype), out=zero)
    np.not_equal(x, number(0, x.dtype), out=wrong)
    np.logical_and(wrong, zero, out=wrong)
    np.logical_or.reduce(wrong, axis=None, out=is_wrong)
    if is_wrong.item():
        raise DifferentiationError(_REFUSED)
    np.copyto(divisor, d)
    np.copyto(divisor, number(1, d.dtype), where=zero)
    np.divide(x, divisor, out=out)


quotient: Scalar = _Quotient(
    "quotient",
    _divide,
    lambda v, x, d, y: quotient(v, d),
    lambda v, x, d, y: -quotient(v * y, d),
    into=_write_quotient,
)
quotient.needs_scratch = False
gaps = MatrixFunction(
    "gaps", _gaps, _gaps_type, _push_gaps, lambda needed, v, y, operands: (_sum_by_index(v),), stacks=True
)
gaps.lower = staticmethod(_gaps_steps)

direction: Scalar = Scalar(
    "direction", _direct, lambda v, x, d, y: quotient(v, d), lambda v, x, d, y: -quotient(v * y, d)
)
inverse: Scalar = Scalar("inverse", _invert, lambda v, d, y: -v * quotient(1.0, np.square(d)))
spread: Scalar = Scalar("spread", np.sqrt, lambda v, x, y: v * (0.5 * inverse(y)))


# --- in native programs -----------------------------------------------------------------------------------------------------
class _OneUnless(Primitive):
    """The number 1, or a refusal where something is true: what quotients in native programs divide by instead of zero."""

    moves = False

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        if operands[0]:
            raise DifferentiationError(_REFUSED)
        return params["dtype"].type(1)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return (ArrayType((), params["dtype"]),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        return (None,)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        return y * 0


one_unless = _OneUnless("one_unless")


def quotient_steps(x: Any, d: Any) -> Any:
    """The quotient of real numbers in other rules."""
    zero = d == 0
    wrong = np.any(np.logical_and(zero, x != 0))
    return x / np.where(zero, one_unless(wrong, dtype=d.dtype), d)


cases(inverse, away_from(0.0, 3, 4))
cases(spread, positive(3, 4))
cases(quotient, normal(3, 4), away_from(0.0, 4))
cases(direction, normal(3, 4), away_from(0.0, 4))
cases(gaps, normal(4))
cases(gaps, normal(2, 3), because="a stack")
