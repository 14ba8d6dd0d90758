"""The pseudoinverse, least squares, and the rank, which moves in steps.

y = a^+, of constant rank:  dy = -y da y + y y^H da^H (1 - a y) + (1 - y a) da^H y^H y.
That holds also where a cutoff takes singular values for zero that are, up to rounding. Where it drops others, y is that of the rest
of a, and directions between a kept singular value s and a dropped one t move it by more: in the bases of singular vectors,
a = U S V^H, e = U^H da V, by V c^H U^H with c = w * e + z * e^H, w = t^2 / (s^2 (s^2 - t^2)) and z = t / (s (s^2 - t^2)).
x = a^+ b, the least-squares solution:  dx = dy b + y db.
The rank is that of the value: where it changes, neither is continuous.
Reference: G. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
variables separate (1973); V. Noferini, A formula for the Frechet derivative of a generalized matrix function (2017).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.types import ArrayType, type_of
from pullback.rules.matrices import (
    MatrixFunction,
    adjoint,
    conjugate,
    hermitian_part,
    matrix_dtype,
    matrix_type,
    stack_shape,
    transposed,
)


def _pinv_type(a: ArrayType, *, rtol: float | None, hermitian: bool) -> tuple[ArrayType, ...]:
    type_ = matrix_type("pinv", a, square=hermitian)
    return (ArrayType((*stack_shape(a), a.shape[-1], a.shape[-2]), type_.dtype),)


def _push_pinv(tangents: Sequence[Any], y: Any, operands: Sequence[Any], *, rtol: float | None, hermitian: bool) -> Any:
    (a,) = operands
    da = hermitian_part(tangents[0]) if hermitian else tangents[0]
    moved = adjoint(da)
    beyond = 0.0
    if _drops(a, rtol):
        u, w, z, v_h = _between_kept_and_dropped(a, rtol)
        e = np.matmul(np.matmul(adjoint(u), da), adjoint(v_h))
        beyond = np.matmul(np.matmul(adjoint(v_h), adjoint(w * e + z * adjoint(e))), adjoint(u))
    outer = np.matmul(np.matmul(y, adjoint(y)), moved)
    inner = np.matmul(np.matmul(moved, adjoint(y)), y)
    return (
        outer
        - np.matmul(np.matmul(outer, a), y)
        + inner
        - np.matmul(y, np.matmul(a, inner))
        - np.matmul(np.matmul(y, da), y)
        + beyond
    )


def _drops(a: Any, rtol: float | None) -> bool:
    """The cutoff may drop singular values that are not zero up to rounding."""
    return rtol is not None and rtol > 100 * float(np.finfo(type_of(a).dtype).eps)


def _between_kept_and_dropped(a: Any, rtol: float | None) -> tuple[Any, Any, Any, Any]:
    """U, w, z and V^H of the module's first lines; w and z are zero between two kept and between two dropped values."""
    u, s, v_h = np.linalg.svd(a, full_matrices=False)
    is_kept = s > rtol * np.max(s, axis=-1, keepdims=True)
    is_between = is_kept[..., :, None] != is_kept[..., None, :]
    kept = np.where(is_between, np.maximum(s[..., :, None], s[..., None, :]), 1.0)
    dropped = np.where(is_between, np.minimum(s[..., :, None], s[..., None, :]), 0.0)
    z = dropped / (kept * (kept - dropped) * (kept + dropped))
    return u, z * (dropped / kept), z, v_h


def _pull_pinv(
    needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], *, rtol: float | None, hermitian: bool
) -> tuple[Any]:
    (a,) = operands
    y_bar_t = transposed(y_bar)  # v^H for the gradient v, whose conjugate y_bar is
    outer = np.matmul(np.matmul(y_bar_t, y), adjoint(y))
    inner = np.matmul(np.matmul(adjoint(y), y), y_bar_t)
    a_bar = (
        outer
        - np.matmul(a, np.matmul(y, outer))
        + inner
        - np.matmul(np.matmul(inner, y), a)
        - np.matmul(np.matmul(adjoint(y), adjoint(y_bar_t)), adjoint(y))
    )
    if _drops(a, rtol):
        u, w, z, v_h = _between_kept_and_dropped(a, rtol)
        c_bar = np.matmul(np.matmul(adjoint(u), y_bar_t), adjoint(v_h))
        a_bar = a_bar + np.matmul(np.matmul(u, w * c_bar + z * adjoint(c_bar)), v_h)
    return (conjugate(hermitian_part(a_bar) if hermitian else a_bar),)


def cutoff_of(a: Any, b: Any, rcond: float | None) -> float:
    """The part of the largest singular value up to which others are zero in `least_squares`, as in LAPACK's gelsd."""
    eps = float(np.finfo(matrix_dtype("lstsq", type_of(a), type_of(b))).eps)
    if rcond is None:
        return eps * max(type_of(a).shape)
    return rcond if 0 < rcond < 1 else eps / 2


def _least_squares_type(a: ArrayType, b: ArrayType, *, rcond: float | None) -> tuple[ArrayType, ...]:
    return (ArrayType((a.shape[-1], b.shape[-1]), matrix_dtype("lstsq", a, b)),)


def _push_least_squares(tangents: Sequence[Any], y: Any, operands: Sequence[Any], *, rcond: float | None) -> Any:
    (da, db), (a, b) = tangents, operands
    rtol = cutoff_of(a, b, rcond)
    inverse = pinv(a, rtol=rtol, hermitian=False)
    dx = None if db is None else np.matmul(inverse, db)
    if da is None:
        return dx
    moved = np.matmul(_push_pinv((da,), inverse, (a,), rtol=rtol, hermitian=False), b)
    return moved if dx is None else dx + moved


def _pull_least_squares(
    needed: Sequence[bool], v: Any, y: Any, operands: Sequence[Any], *, rcond: float | None
) -> tuple[Any, Any]:
    a, b = operands
    rtol = cutoff_of(a, b, rcond)
    inverse = pinv(a, rtol=rtol, hermitian=False)
    b_bar = np.matmul(transposed(inverse), v)
    if not needed[0]:
        return (None, b_bar)
    (a_bar,) = _pull_pinv((True,), np.matmul(v, transposed(b)), inverse, (a,), rtol=rtol, hermitian=False)
    return (a_bar, b_bar)


pinv = MatrixFunction(
    "pinv",
    lambda a, rtol, hermitian: np.linalg.pinv(a, **({} if rtol is None else {"rcond": rtol}), hermitian=hermitian),
    _pinv_type,
    _push_pinv,
    _pull_pinv,
)
least_squares = MatrixFunction(
    "least_squares",
    lambda a, b, rcond: np.linalg.lstsq(a, b, rcond)[0],
    _least_squares_type,
    _push_least_squares,
    _pull_least_squares,
    stacks=False,
)
matrix_rank = MatrixFunction(
    "matrix_rank",
    lambda a, tol, rtol, hermitian: np.linalg.matrix_rank(a, tol, hermitian, rtol=rtol),
    lambda a, tol, rtol, hermitian: (ArrayType(stack_shape(matrix_type("matrix_rank", a)), np.dtype(np.intp)),),
    lambda tangents, y, operands, tol, rtol, hermitian: y * 0,
    lambda needed, v, y, operands, tol, rtol, hermitian: (None,),
)
matrix_rank.moves = False

cases(pinv, normal(4, 3), rtol=None, hermitian=False)
cases(pinv, normal(2, 2, 3), rtol=None, hermitian=False, because="a stack of wide matrices")
cases(pinv, normal(4, 3), rtol=0.6, hermitian=False, because="a cutoff that drops singular values")
cases(least_squares, normal(4, 3), normal(4, 2), rcond=None)
cases(least_squares, normal(3, 5), normal(3, 2), rcond=0.5, because="a cutoff that drops singular values")
cases(least_squares, normal(2, 3), normal(2, 1), rcond=None, because="the solution of least norm")
