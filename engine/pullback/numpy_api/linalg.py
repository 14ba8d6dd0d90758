"""numpy.linalg: systems, decompositions and what is written in terms of them. Norms are in `norms.py`."""

from typing import Any

import numpy as np

from pullback.core.types import type_of
from pullback.errors import NeedsValueError, TracingError
from pullback.numpy_api import contractions
from pullback.numpy_api.operands import NONE, as_operand
from pullback.numpy_api.translations import implements, refuse, results_of
from pullback.rules import determinants, eigen, factorizations, pseudoinverse, singular, systems
from pullback.rules.matrices import adjoint, conjugate, matrix_dtype, real, real_dtype


# --- systems --------------------------------------------------------------------------------------------------------
@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    a, b = as_operand(a), as_operand(b)
    if np.ndim(b) != 1:
        return systems.solve(a, b)
    return systems.solve(a, np.expand_dims(b, 1))[..., 0]


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    return systems.inv(a)


@implements(np.linalg.det)
def det(a: Any) -> Any:
    return determinants.det(a)


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    return results_of(np.linalg.slogdet)(*determinants.slogdet(a))


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    a, b = as_operand(a), as_operand(b)
    if axes is not None:
        moved = np.lib.array_utils.normalize_axis_tuple(axes, np.ndim(a))
        a = np.transpose(a, (*(axis for axis in range(np.ndim(a)) if axis not in moved), *moved))
    shape = np.shape(a)[np.ndim(b) - np.ndim(a) :] if np.ndim(a) > np.ndim(b) else ()
    size = int(np.prod(shape, dtype=np.int64))
    if np.size(a) != size**2:
        raise np.linalg.LinAlgError(
            f"numpy.linalg.tensorsolve: an array of shape {np.shape(a)} is not square for {shape}"
        )
    return np.reshape(solve(np.reshape(a, (size, size)), np.ravel(b)), shape)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    if ind <= 0:
        raise ValueError(f"numpy.linalg.tensorinv: ind must be positive, not {ind}")
    rows, columns = np.shape(a)[:ind], np.shape(a)[ind:]
    size = int(np.prod(columns, dtype=np.int64))
    return np.reshape(systems.inv(np.reshape(a, (size, size))), (*columns, *rows))


# --- decompositions -------------------------------------------------------------------------------------------------
@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    return adjoint(factorizations.cholesky(adjoint(a))) if upper else factorizations.cholesky(a)


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    rows, columns = np.shape(a)[-2:]
    if mode not in ("reduced", "r") and not (mode == "complete" and rows <= columns):
        raise TracingError(
            f"numpy.linalg.qr(…, mode={mode!r}) cannot be differentiated: "
            "the completion of the basis is arbitrary; use mode='reduced'"
        )
    if rows >= columns:
        q, r = factorizations.qr(a)
    else:
        q, square = factorizations.qr(a[..., :rows])
        r = np.concatenate([square, np.matmul(adjoint(q), a[..., rows:])], axis=-1)
    return r if mode == "r" else results_of(np.linalg.qr)(q, r)


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 (NumPy's name)
    return results_of(np.linalg.eigh)(*eigen.eigh(a, lower=_is_lower(UPLO)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 (NumPy's name)
    return eigen.eigvalsh(a, lower=_is_lower(UPLO))


def _is_lower(uplo: str) -> bool:
    if uplo.upper() not in ("L", "U"):
        raise ValueError(f"UPLO must be 'L' or 'U', not {uplo!r}")
    return uplo.upper() == "L"


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    return results_of(np.linalg.eig)(*eigen.eig(a))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    return eigen.eigvals(a)


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    refuse("numpy.linalg.svd", hermitian=hermitian or None)
    if not compute_uv:
        return singular.svdvals(a)
    if full_matrices and np.shape(a)[-1] != np.shape(a)[-2]:
        raise TracingError(
            "numpy.linalg.svd of matrices that are not square cannot be differentiated with full_matrices=True: "
            "the completion of the bases is arbitrary; pass full_matrices=False"
        )
    return results_of(np.linalg.svd)(*singular.svd(a))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    return singular.svdvals(x)


# --- least squares and rank -----------------------------------------------------------------------------------------
@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NONE) -> Any:
    if rcond is not None and rtol is not NONE:
        raise ValueError("numpy.linalg.pinv: rtol and rcond are two names of one thing; give one of them")
    tolerance = rcond if rtol is NONE else rtol
    if rtol is None:
        tolerance = max(np.shape(a)[-2:]) * np.finfo(real_dtype(matrix_dtype("pinv", type_of(a)))).eps
    return pseudoinverse.pinv(a, rtol=_number("numpy.linalg.pinv", tolerance), hermitian=bool(hermitian))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    a, b = as_operand(a), as_operand(b)
    if np.ndim(a) != 2 or np.ndim(b) not in (1, 2):
        raise np.linalg.LinAlgError("numpy.linalg.lstsq takes one matrix and one or several right sides")
    (rows, columns), right = np.shape(a), np.expand_dims(b, 1) if np.ndim(b) == 1 else b
    x = pseudoinverse.least_squares(a, right, rcond=_number("numpy.linalg.lstsq", rcond))
    s = singular.svdvals(a)
    tolerance = np.finfo(s.dtype).eps * max(rows, columns) if rcond is None else rcond
    rank = pseudoinverse.matrix_rank(a, tol=None, rtol=max(float(tolerance), 0.0), hermitian=False)
    if rows > columns and _is_full(rank, columns):
        missed = right - np.matmul(a, x)
        residuals = np.sum(real(missed * conjugate(missed)), axis=0)
    else:
        residuals = np.zeros((0,), s.dtype)
    return (x[:, 0] if np.ndim(b) == 1 else x), residuals, rank, s


def _is_full(rank: Any, columns: int) -> bool:
    """True if the columns are independent, on which the shape of the residuals depends."""
    try:
        return int(rank) == columns
    except NeedsValueError:
        raise  # a compiled function finds out by running
    except TracingError:
        return True  # the matrices of a batch are taken as being alike: of full rank


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:  # noqa: N803 (NumPy's name)
    function = "numpy.linalg.matrix_rank"
    if np.ndim(A) < 2:
        return np.any(A != 0) * 1  # of one row: 0 or 1
    return pseudoinverse.matrix_rank(
        A, tol=_number(function, tol), rtol=_number(function, rtol), hermitian=bool(hermitian)
    )


def _number(function: str, tolerance: Any) -> float | None:
    if tolerance is None:
        return None
    if np.ndim(tolerance) != 0:
        raise TracingError(f"{function} with a tolerance per matrix cannot be differentiated; give one number")
    return float(tolerance)


# --- products -------------------------------------------------------------------------------------------------------
@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    if np.ndim(a) < 2 or np.shape(a)[-1] != np.shape(a)[-2]:
        raise np.linalg.LinAlgError(f"numpy.linalg.matrix_power takes square matrices, not shape {np.shape(a)}")
    if n == 0:
        return np.broadcast_to(np.eye(np.shape(a)[-1], dtype=a.dtype), np.shape(a)).copy()
    base = a if n > 0 else systems.inv(a)
    power = None
    for bit in reversed(f"{abs(n):b}"):
        if bit == "1":
            power = base if power is None else np.matmul(power, base)
        base = np.matmul(base, base)
    return power


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    refuse("numpy.linalg.multi_dot", out=out)
    operands = [as_operand(x) for x in arrays]
    if len(operands) < 2:
        raise ValueError("numpy.linalg.multi_dot needs at least two arrays")
    row, column = np.ndim(operands[0]) == 1, np.ndim(operands[-1]) == 1
    if row:
        operands[0] = np.expand_dims(operands[0], 0)
    if column:
        operands[-1] = np.expand_dims(operands[-1], 1)
    if any(np.ndim(x) != 2 for x in operands):
        raise np.linalg.LinAlgError("numpy.linalg.multi_dot takes matrices, and vectors at its two ends")
    product = _product(operands, _cheapest_splits([np.shape(x) for x in operands]), 0, len(operands) - 1)
    if row:
        product = product[0]
    return product[..., 0] if column else product


def _cheapest_splits(shapes: list[tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """The cheapest place to split each run of a chain of matrices, by number of multiplications."""
    count = len(shapes)
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            outer = shapes[i][0] * shapes[j][1]
            cost[i, j], split[i, j] = min((cost[i, k] + cost[k + 1, j] + outer * shapes[k][1], k) for k in range(i, j))
    return split


def _product(operands: list[Any], split: dict[tuple[int, int], int], first: int, last: int) -> Any:
    if first == last:
        return operands[first]
    k = split[first, last]
    return np.matmul(_product(operands, split, first, k), _product(operands, split, k + 1, last))


@implements(np.linalg.matmul)
def matmul(x1: Any, x2: Any, /) -> Any:
    return np.matmul(x1, x2)


@implements(np.linalg.tensordot)
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return np.tensordot(x1, x2, axes)


@implements(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return contractions.vecdot(x1, x2, axis=axis)


@implements(np.linalg.outer)
def outer(x1: Any, x2: Any, /) -> Any:
    x1, x2 = as_operand(x1), as_operand(x2)
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError("numpy.linalg.outer takes two vectors; numpy.outer flattens its arguments")
    return np.expand_dims(x1, 1) * x2


@implements(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    x1, x2 = as_operand(x1), as_operand(x2)
    if np.shape(x1)[axis] != 3 or np.shape(x2)[axis] != 3:
        raise ValueError("numpy.linalg.cross takes vectors of three components")
    return np.cross(x1, x2, axis=axis)


@implements(np.linalg.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return np.trace(x, offset, -2, -1, dtype)


@implements(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return np.diagonal(x, offset, -2, -1)


@implements(np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    return np.matrix_transpose(x)
