"""Triangular factorizations: Cholesky and QR.

Cholesky, a = l l^H: with X = l^-1 da l^-H,  dl = l lower_half(X);  a_bar = l^-H lower_half(l^H l_bar) l^-1, made
Hermitian. The operand is taken as Hermitian, as a user means it although NumPy reads one triangle: the cotangent is
Hermitian (half of it in either triangle) and so is the tangent that is pushed. For real matrices the pullback is a rule of
its own, `cholesky_pull`, of which native programs have a blocked form.
Reference: I. Murray, Differentiation of the Cholesky decomposition (2016).

QR, a = q r with at least as many rows as columns: with X = q^H da r^-1 and Z the anti-Hermitian matrix whose lower
triangle is that of X (on the diagonal: its imaginary part, LAPACK keeps the diagonal of r real),
dr = (X - Z) r,  dq = da r^-1 - q (X - Z);  a_bar = (q_bar + q M) r^-H, where M is Hermitian with the lower triangle of
r r_bar^H - q_bar^H q. Wide matrices are factorized by their leading square block (`numpy_api.linalg`).
References: S. F. Walter, L. Lehmann, R. Lamour, On evaluating higher-order derivatives of the QR decomposition of tall
matrices with full column rank (2012); J. Townsend, Differentiating the QR decomposition (2018).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.types import ArrayType
from pullback.rules.matrices import (
    MatrixFunction,
    adjoint,
    as_diagonal,
    conjugate,
    diagonal,
    hermitian_part,
    is_complex,
    lower_half,
    matrix_type,
    real,
    stack_shape,
    strictly_lower,
    transposed,
)
from pullback.rules.systems import solve
from pullback.rules.triangular import LEAST_ROWS, solve_triangular


def _divided(b: Any, a: Any) -> Any:
    """The product b a^-1."""
    return adjoint(solve(adjoint(a), adjoint(b)))


def _push_cholesky(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> Any:
    x = _divided(solve(y, hermitian_part(tangents[0])), adjoint(y))
    return np.matmul(y, lower_half(x))


def _pull_cholesky(needed: Sequence[bool], v: Any, y: Any, operands: Sequence[Any]) -> tuple[Any]:
    if not is_complex(y):
        return (cholesky_pull(y, v),)
    inner = lower_half(np.matmul(adjoint(y), conjugate(v)))
    return (conjugate(hermitian_part(_divided(solve(adjoint(y), inner), y))),)


# --- the pullback of real Cholesky factors: s = l^-T lower_half(l^T v) l^-1, made symmetric ---------------------------------
def _in_lower(l: Any, right: Any, *, trans: int) -> Any:  # noqa: E741 - the factor
    """Solve with a lower triangle or its transpose."""
    if np.ndim(l) == 2 and np.shape(l)[-1] >= LEAST_ROWS:
        return solve_triangular(l, right, trans=trans, lower=True, unit_diagonal=False)
    return solve(transposed(l) if trans else l, right)  # of stacks in one call of NumPy


def _pulled(l: Any, v: Any) -> Any:  # noqa: E741
    """The matrix s, before it is made symmetric."""
    return _between(l, lower_half(np.matmul(transposed(l), v)))


def _between(l: Any, inner: Any) -> Any:  # noqa: E741
    """The product l^-T inner l^-1."""
    left = _in_lower(l, inner, trans=1)
    return transposed(_in_lower(l, transposed(left), trans=1))


def _evaluate_pull(l: Any, v: Any) -> Any:  # noqa: E741
    return hermitian_part(_pulled(np.tril(l), v))


def _push_pull(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> Any:
    (dl, dv), l, v = tangents, np.tril(operands[0]), operands[1]  # noqa: E741
    pushed = 0
    if dv is not None:
        pushed = _pulled(l, dv)
    if dl is not None:
        dl, s = np.tril(dl), _pulled(l, v)
        moved = _between(l, lower_half(np.matmul(transposed(dl), v)))
        left = _in_lower(l, np.matmul(transposed(dl), s), trans=1)
        right = transposed(_in_lower(l, transposed(np.matmul(s, dl)), trans=1))
        pushed = pushed + moved - left - right
    return hermitian_part(pushed)


def _pull_pull(needed: Sequence[bool], w: Any, y: Any, operands: Sequence[Any]) -> tuple[Any, Any]:
    l, v = np.tril(operands[0]), operands[1]  # noqa: E741
    right = transposed(_in_lower(l, hermitian_part(w), trans=0))  # w l^-T
    inner = lower_half(_in_lower(l, right, trans=0))
    l_bar = np.matmul(v, transposed(inner)) - 2 * np.matmul(y, right)
    return (np.tril(l_bar) if needed[0] else None, np.matmul(l, inner))


def _qr_type(a: ArrayType) -> tuple[ArrayType, ...]:
    type_ = matrix_type("qr", a)
    rows, columns = a.shape[-2:]
    if rows < columns:
        raise ValueError(f"qr: the rule takes at least as many rows as columns, not {rows} × {columns}")
    return (type_, ArrayType((*stack_shape(a), columns, columns), type_.dtype))


def _push_qr(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> tuple[Any, Any]:
    q, r = y
    scaled = _divided(tangents[0], r)
    x = np.matmul(adjoint(q), scaled)
    lower = strictly_lower(x)
    upper = x - (lower - adjoint(lower))
    if is_complex(x):
        upper = upper - as_diagonal(diagonal(x) - real(diagonal(x)))
    return (scaled - np.matmul(q, upper), np.matmul(upper, r))


def _pull_qr(needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any]) -> tuple[Any]:
    q, r = y
    q_bar, r_bar = (conjugate(v) for v in y_bar)
    m = 0 if r_bar is None else np.matmul(r, adjoint(r_bar))
    if q_bar is not None:
        m = m - np.matmul(adjoint(q_bar), q)
    lower = strictly_lower(m)
    inner = np.matmul(q, lower + adjoint(lower) + as_diagonal(real(diagonal(m))))
    return (conjugate(_divided(inner if q_bar is None else q_bar + inner, adjoint(r))),)


cholesky = MatrixFunction(
    "cholesky",
    np.linalg.cholesky,
    lambda a: (matrix_type("cholesky", a, square=True),),
    _push_cholesky,
    _pull_cholesky,
)
cholesky_pull: MatrixFunction = MatrixFunction(
    "cholesky_pull",
    _evaluate_pull,
    lambda factor, _: (matrix_type("cholesky_pull", factor, square=True),),
    _push_pull,
    _pull_pull,
)
qr = MatrixFunction("qr", lambda a: tuple(np.linalg.qr(a)), _qr_type, _push_qr, _pull_qr, results=2)


def _factor(*shape: int) -> Any:
    return lambda rng: np.tril(rng.normal(size=shape)) + 3 * np.eye(shape[-1])


cases(cholesky_pull, _factor(3, 3), normal(3, 3))
cases(cholesky_pull, _factor(2, 3, 3), normal(2, 3, 3), because="a stack")
