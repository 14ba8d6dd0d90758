"""Determinants.

    y = det a:         dy = tr(adj(a) da),     a_bar = y_bar adj(a)^T
    s, l = slogdet a:  z = tr(a^-1 da),        dl = Re z,  ds = s i Im z

The adjugate adj(a) = det(a) a^-1 exists for every square matrix, singular ones included, so a determinant is
differentiable where it is zero (a^-1 would not do there). It is taken from the singular values, and NaN for a matrix
with an element that is not finite, which has none. The adjugate's own derivative is written with the inverse; a second derivative of a determinant needs a regular matrix.
Reference: Giles (2008), section 2.2.4; G. W. Stewart, On the adjugate matrix (1998).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.types import ArrayType
from pullback.rules.matrices import MatrixFunction, matrix_type, real, real_dtype, stack_shape, trace, transposed
from pullback.rules.systems import inv

#: Rows of matrices of which native programs write cofactors out: three to five times as many multiplications for each more.
MOST_COFACTORS = 4


def _adjugate(a: Any) -> Any:
    is_finite = np.all(np.isfinite(a), axis=(-2, -1), keepdims=True)
    u, s, vh = np.linalg.svd(np.where(is_finite, a, 0))
    ones = np.ones((*s.shape[:-1], 1), s.dtype)
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    others = before * after if s.shape[-1] else s  # the product of all singular values but one
    sign = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    found = sign * np.matmul(np.conjugate(transposed(vh)) * others[..., None, :], np.conjugate(transposed(u)))
    return np.where(is_finite, found, found.dtype.type(np.nan))


def _number_type(name: str, a: ArrayType) -> ArrayType:
    return ArrayType(stack_shape(a), matrix_type(name, a, square=True).dtype)


def _as_factor(v: Any) -> Any:
    return np.expand_dims(v, (-2, -1))


def _push_det(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> Any:
    return np.sum(transposed(adjugate(operands[0])) * tangents[0], axis=(-2, -1))


def _push_adjugate(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> Any:
    moved = np.matmul(y, tangents[0])
    inverse = inv(operands[0])
    return trace(moved) * inverse - np.matmul(moved, inverse)


def _pull_adjugate(needed: Sequence[bool], v: Any, y: Any, operands: Sequence[Any]) -> tuple[Any]:
    inverse = inv(operands[0])
    y_t = transposed(y)
    along = np.sum(v * inverse, axis=(-2, -1), keepdims=True)
    return (along * y_t - np.matmul(np.matmul(y_t, v), transposed(inverse)),)


def _slogdet_type(a: ArrayType) -> tuple[ArrayType, ...]:
    sign = _number_type("slogdet", a)
    return (sign, ArrayType(sign.shape, real_dtype(sign.dtype)))


def _push_slogdet(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> tuple[Any, Any]:
    sign, _ = y
    z = np.sum(transposed(inv(operands[0])) * tangents[0], axis=(-2, -1))
    if sign.dtype.kind != "c":
        return (None, real(z))  # the sign of a real determinant moves in steps
    return (sign * (z - np.real(z)), np.real(z))


def _pull_slogdet(needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any]) -> tuple[Any]:
    sign, _ = y
    sign_bar, log_bar = y_bar
    factor = log_bar
    if sign_bar is not None and sign.dtype.kind == "c":
        turn = 1j * np.imag(sign_bar * sign)
        factor = turn if factor is None else factor + turn
    return (None if factor is None else _as_factor(factor) * transposed(inv(operands[0])),)


adjugate = MatrixFunction(
    "adjugate", _adjugate, lambda a: (matrix_type("adjugate", a, square=True),), _push_adjugate, _pull_adjugate
)
det = MatrixFunction(
    "det",
    np.linalg.det,
    lambda a: (_number_type("det", a),),
    _push_det,
    lambda needed, v, y, operands: (_as_factor(v) * transposed(adjugate(operands[0])),),
)
slogdet = MatrixFunction(
    "slogdet", lambda a: tuple(np.linalg.slogdet(a)), _slogdet_type, _push_slogdet, _pull_slogdet, results=2
)

cases(adjugate, normal(3, 3))
cases(adjugate, normal(2, 2, 2), because="a stack")
cases(det, normal(3, 3))
cases(det, normal(2, 3, 3), because="a stack")
