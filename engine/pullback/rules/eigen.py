"""Eigenvalues and eigenvectors.

Hermitian, a = v diag(w) v^H: with P = v^H da v,  dw = diag(P),  dv = v (P / gaps(w));
a_bar = v (diag(w_bar) + (v^H v_bar) / gaps(w)) v^H, made Hermitian. The operand is taken as Hermitian, as a user means
it although NumPy reads one triangle.

General, a = v diag(w) v^-1: with P = v^-1 da v,  dw = diag(P),  dv = v (P / gaps(w)) + v diag(c), where c keeps every
column as LAPACK normalizes it: of length one, its largest component real.

What has no derivative is refused (`rules.quotients`): eigenvectors of an eigenvalue that is repeated. Eigenvalues alone
are differentiable as a whole where they are repeated (their sum, any symmetric function); single ones of them are not,
and get the derivative in the basis that LAPACK happened to choose. The eigenvectors of a complex Hermitian matrix have
an arbitrary phase: a function that depends on it is refused in reverse mode (`phase_free`).
References: Giles (2008), section 3.1; Seeger et al. (2017); C. Boeddeker, P. Hanebrink, L. Drude, J. Heymann,
R. Haeb-Umbach, On the computation of complex-valued gradients with application to statistically optimum beamforming (2017).
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from pullback.core.types import ArrayType
from pullback.errors import DifferentiationError, NeedsValueError
from pullback.rules.matrices import (
    MatrixFunction,
    adjoint,
    as_columns,
    as_diagonal,
    conjugate,
    diagonal,
    hermitian_part,
    is_complex,
    matrix_type,
    off_diagonal,
    real,
    real_dtype,
)
from pullback.rules.quotients import gaps, quotient
from pullback.rules.systems import solve


# --- the phase of a vector ------------------------------------------------------------------------------------------
def _phase_free(x: Any, by_phase: Any) -> Any:
    if np.iscomplexobj(by_phase) and by_phase.size:
        largest = np.max(np.abs(np.imag(np.diagonal(by_phase, axis1=-2, axis2=-1))))
        if largest > 1e3 * np.sqrt(np.finfo(by_phase.dtype).eps) * np.max(np.abs(by_phase)):
            raise DifferentiationError(
                "the function depends on the phase of complex eigenvectors or singular vectors, which is arbitrary; "
                "make it independent of the phase (np.abs(v), v @ v.conj().T with v from one call, …)"
            )
    return off_diagonal(x)


_phase_free_rule = MatrixFunction(
    "phase_free",
    _phase_free,
    lambda x, by_phase: (x,),
    lambda tangents, y, operands: np.zeros(np.shape(y), y.dtype) if tangents[0] is None else off_diagonal(tangents[0]),
    lambda needed, v, y, operands: (off_diagonal(v), None),
)


def phase_free(x: Any, by_phase: Any) -> Any:
    """The matrix x without its diagonal, if that of `by_phase`, the derivative by the phases of vectors, is real."""
    return _phase_free_rule(x, by_phase) if is_complex(by_phase) else off_diagonal(x)


# --- Hermitian matrices ---------------------------------------------------------------------------------------------
def _uplo(*, lower: bool) -> Literal["L", "U"]:
    return "L" if lower else "U"


def _eigh_type(a: ArrayType, *, lower: bool) -> tuple[ArrayType, ...]:
    v = matrix_type("eigh", a, square=True)
    return (ArrayType(a.shape[:-1], real_dtype(v.dtype)), v)


def _in_eigenbasis(da: Any, v: Any) -> Any:
    return np.matmul(np.matmul(adjoint(v), hermitian_part(da)), v)


def _push_eigh(tangents: Sequence[Any], y: Any, operands: Sequence[Any], *, lower: bool) -> tuple[Any, Any]:
    w, v = y
    p = _in_eigenbasis(tangents[0], v)
    return (real(diagonal(p)), np.matmul(v, quotient(off_diagonal(p), gaps(w))))


def _pull_eigh(needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], *, lower: bool) -> tuple[Any]:
    w, v = y
    w_bar, v_bar = y_bar
    if v_bar is None:
        return (conjugate(np.matmul(v * as_columns(w_bar), adjoint(v))),)
    x = np.matmul(adjoint(v), conjugate(v_bar))
    inner = quotient(phase_free(x, x), gaps(w))
    if w_bar is not None:
        inner = inner + as_diagonal(w_bar)
    return (conjugate(hermitian_part(np.matmul(np.matmul(v, inner), adjoint(v)))),)


def _push_eigvalsh(tangents: Sequence[Any], y: Any, operands: Sequence[Any], *, lower: bool) -> Any:
    return real(diagonal(_in_eigenbasis(tangents[0], eigh(*operands, lower=lower)[1])))


def _pull_eigvalsh(needed: Sequence[bool], v: Any, y: Any, operands: Sequence[Any], *, lower: bool) -> tuple[Any]:
    vectors = eigh(*operands, lower=lower)
    return _pull_eigh(needed, (v, None), vectors, operands, lower=lower)


eigh = MatrixFunction(
    "eigh",
    lambda a, lower: tuple(np.linalg.eigh(a, _uplo(lower=lower))),
    _eigh_type,
    _push_eigh,
    _pull_eigh,
    results=2,
)
eigvalsh = MatrixFunction(
    "eigvalsh",
    lambda a, lower: np.linalg.eigvalsh(a, _uplo(lower=lower)),
    lambda a, lower: _eigh_type(a, lower=lower)[:1],
    _push_eigvalsh,
    _pull_eigvalsh,
)


# --- general matrices -----------------------------------------------------------------------------------------------
def _eig_type(a: ArrayType) -> tuple[ArrayType, ...]:
    v = matrix_type("eig", a, square=True)
    if v.dtype.kind != "c":
        raise NeedsValueError("eigenvalues of a real matrix are real or complex, depending on its values")
    return (ArrayType(a.shape[:-1], v.dtype), v)


def _largest(v: Any) -> Any:
    """One where a column has its largest component, zero elsewhere."""
    magnitude = np.abs(v)
    rows = np.arange(v.shape[-2])[:, None]
    return (rows == np.argmax(magnitude, axis=-2, keepdims=True)).astype(magnitude.dtype)


largest_component = MatrixFunction(
    "largest_component",
    _largest,
    lambda v: (ArrayType(v.shape, real_dtype(v.dtype)),),
    lambda tangents, y, operands: np.zeros(np.shape(y), y.dtype),
    lambda needed, v, y, operands: (None,),
)
largest_component.moves = False


def _push_eig(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> tuple[Any, Any]:
    w, v = y
    p = solve(v, np.matmul(tangents[0], v))
    free = np.matmul(v, quotient(off_diagonal(p), gaps(w)))
    dv = free - v * _column_sums(real(conjugate(v) * free))
    if is_complex(v):
        largest = largest_component(v)
        turn = _column_sums(largest * np.imag(free)) / _column_sums(largest * np.real(v))
        dv = dv - 1j * v * turn
    return (diagonal(p), dv)


def _pull_eig(needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any]) -> tuple[Any]:
    w, v = y
    w_bar, v_bar = (conjugate(part) for part in y_bar)
    inner = 0 if w_bar is None else as_diagonal(w_bar)
    if v_bar is not None:
        along = _column_sums(conjugate(v_bar) * v)
        free_bar = v_bar - v * real(along)
        if is_complex(v):
            largest = largest_component(v)
            free_bar = free_bar + 1j * largest * (np.imag(along) / _column_sums(largest * np.real(v)))
        inner = inner + quotient(off_diagonal(np.matmul(adjoint(v), free_bar)), conjugate(gaps(w)))
    return (conjugate(solve(adjoint(v), np.matmul(inner, adjoint(v)))),)


def _column_sums(x: Any) -> Any:
    return np.sum(x, axis=-2, keepdims=True)


eig = MatrixFunction("eig", lambda a: tuple(np.linalg.eig(a)), _eig_type, _push_eig, _pull_eig, results=2)
# Eigenvalues come in the order in which `eig` gives them: LAPACK may order them otherwise where no vectors are asked for.
eigvals = MatrixFunction(
    "eigvals",
    lambda a: np.linalg.eig(a)[0],
    lambda a: _eig_type(a)[:1],
    lambda tangents, y, operands: _push_eigvals(tangents[0], operands[0]),
    lambda needed, v, y, operands: _pull_eig(needed, (v, None), eig(operands[0]), operands),
)


def _push_eigvals(da: Any, a: Any) -> Any:
    _, v = eig(a)
    return diagonal(solve(v, np.matmul(da, v)))
