"""Singular values and vectors, reduced: a = u diag(s) v^H with as many columns in u and v as a has singular values.

With P = u^H da v and d = gaps(s) (s_i + s_j), the difference of squares:  ds = Re diag(P),
du = u ((P s + s P^H) / d) + (1 - u u^H) da v / s,  dv = v ((s P + P^H s) / d) + (1 - v v^H) da^H u / s;
a_bar = u (diag(s_bar) + [skew(u^H u_bar) / d] s + s [skew(v^H v_bar) / d]) v^H + (1 - u u^H) (u_bar / s) v^H
+ u (v_bar / s)^H (1 - v v^H).

Singular vectors of complex matrices come in pairs of arbitrary phase; the phase is chosen so that both turn by half.
Refused: derivatives of vectors that belong to a repeated singular value, or to one that is zero and has no partner, and
functions of the phase. Singular values alone: as for eigenvalues (`rules.eigen`); at zero they have a kink.
References: J. Townsend, Differentiating the singular value decomposition (2016); Seeger et al. (2017);
Z.-Q. Wan, S.-X. Zhang, Automatic differentiation for complex valued SVD (2019), for the phase.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.types import ArrayType
from pullback.rules.eigen import phase_free
from pullback.rules.matrices import (
    MatrixFunction,
    adjoint,
    as_columns,
    as_diagonal,
    as_rows,
    conjugate,
    diagonal,
    is_complex,
    matrix_type,
    off_diagonal,
    real,
    real_dtype,
    stack_shape,
)
from pullback.rules.quotients import gaps, quotient


def _svd_type(a: ArrayType) -> tuple[ArrayType, ...]:
    type_ = matrix_type("svd", a)
    rows, columns = a.shape[-2:]
    count, stack = min(rows, columns), stack_shape(a)
    return (
        ArrayType((*stack, rows, count), type_.dtype),
        ArrayType((*stack, count), real_dtype(type_.dtype)),
        ArrayType((*stack, count, columns), type_.dtype),
    )


def _by_differences(x: Any, s: Any) -> Any:
    """x_ij / (s_j^2 - s_i^2) for x with zeros on the diagonal."""
    return quotient(quotient(x, gaps(s)), as_rows(s) + as_columns(s))


def _outside(u: Any, x: Any) -> Any:
    """(1 - u u^H) x: nothing, where u is square."""
    rows, columns = np.shape(u)[-2:]
    return None if rows == columns else x - np.matmul(u, np.matmul(adjoint(u), x))


def _push_svd(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> tuple[Any, Any, Any]:
    u, s, vh = y
    (da,) = tangents
    moved = np.matmul(da, adjoint(vh))
    p = np.matmul(adjoint(u), moved)
    q = adjoint(p)
    left = _by_differences(off_diagonal(p * as_columns(s) + as_rows(s) * q), s)
    right = _by_differences(off_diagonal(as_rows(s) * p + q * as_columns(s)), s)
    if is_complex(p):
        d = diagonal(p)
        turn = as_diagonal(quotient(d - np.real(d), 2 * s))
        left, right = left + turn, right - turn
    du = np.matmul(u, left)
    dvh = np.matmul(adjoint(right), vh)
    u_rest = _outside(u, moved)
    if u_rest is not None:
        du = du + quotient(u_rest, as_columns(s))
    v_rest = _outside(adjoint(vh), np.matmul(adjoint(da), u))
    if v_rest is not None:
        dvh = dvh + adjoint(quotient(v_rest, as_columns(s)))
    return (du, real(diagonal(p)), dvh)


def _pull_svd(needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any]) -> tuple[Any]:
    u, s, vh = y
    u_bar, s_bar, vh_bar = (conjugate(part) for part in y_bar)
    if u_bar is None and vh_bar is None:
        return (conjugate(np.matmul(u * as_columns(s_bar), vh)),)
    inner = 0 if s_bar is None else as_diagonal(s_bar)
    left = 0 if u_bar is None else np.matmul(adjoint(u), u_bar)
    right = 0 if vh_bar is None else np.matmul(vh, adjoint(vh_bar))
    if is_complex(u):
        d = diagonal(left - right)
        inner = inner + as_diagonal(quotient((d - np.real(d)) / 2, s))
    both = left + right  # a pair of vectors may turn by a common phase: it does not show in their product
    if u_bar is not None:
        x = _by_differences(phase_free(left, both), s)
        inner = inner + (x + adjoint(x)) * as_columns(s)
    if vh_bar is not None:
        x = _by_differences(phase_free(right, both), s)
        inner = inner + as_rows(s) * (x + adjoint(x))
    a_bar = np.matmul(np.matmul(u, inner), vh)
    if u_bar is not None and (rest := _outside(u, u_bar)) is not None:
        a_bar = a_bar + np.matmul(quotient(rest, as_columns(s)), vh)
    if vh_bar is not None and (rest := _outside(adjoint(vh), adjoint(vh_bar))) is not None:
        a_bar = a_bar + np.matmul(u, adjoint(quotient(rest, as_columns(s))))
    return (conjugate(a_bar),)


def _push_svdvals(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> Any:
    u, _, vh = svd(operands[0])
    return real(diagonal(np.matmul(np.matmul(adjoint(u), tangents[0]), adjoint(vh))))


def _pull_svdvals(needed: Sequence[bool], v: Any, y: Any, operands: Sequence[Any]) -> tuple[Any]:
    return _pull_svd(needed, (None, v, None), svd(operands[0]), operands)


svd = MatrixFunction(
    "svd", lambda a: tuple(np.linalg.svd(a, full_matrices=False)), _svd_type, _push_svd, _pull_svd, results=3
)
svdvals = MatrixFunction(
    "svdvals",
    lambda a: np.linalg.svd(a, compute_uv=False),
    lambda a: _svd_type(a)[1:2],
    _push_svdvals,
    _pull_svdvals,
)
