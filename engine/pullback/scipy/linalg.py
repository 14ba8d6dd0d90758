"""scipy.linalg for traced values.

    from pullback.scipy import linalg
    pb.grad(lambda a: np.sum(linalg.expm(a)))(a)

Functions that numpy.linalg has as well are numpy.linalg's under SciPy's signatures. Options that only concern memory
(overwrite_a, check_finite, lwork) are accepted and mean nothing: traced values are never overwritten.
"""

from typing import Any

import numpy as np

from pullback.errors import NoRuleError, TracingError
from pullback.namespaces import the_rest_of
from pullback.numpy.creation import asarray
from pullback.numpy_api import linalg, norms
from pullback.rules import determinants, eigen, factorizations, pseudoinverse, singular, systems, triangular
from pullback.rules.matrices import adjoint, conjugate, strictly_lower
from pullback.rules.scipy_linalg import exponential, sylvester
from pullback.rules.scipy_linalg import lu as lu_rules
from pullback.scipy.stand_ins import stands_in_for

_in_scipy = stands_in_for("scipy.linalg")
_TRANS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


# --- systems --------------------------------------------------------------------------------------------------------
@_in_scipy
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solve op(a) x = b for a triangular matrix."""
    if trans not in _TRANS:
        raise ValueError(f"solve_triangular: trans={trans!r} is unknown; it is 0, 1, 2, 'N', 'T' or 'C'")
    return _with_columns(
        asarray(b),
        lambda right: triangular.solve_triangular(
            asarray(a), right, trans=_TRANS[trans], lower=bool(lower), unit_diagonal=bool(unit_diagonal)
        ),
    )


@_in_scipy
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """Solve a x = b; with `assume_a` of a symmetric kind one triangle is read."""
    a, b = asarray(a), asarray(b)
    kind = _KINDS.get(assume_a or "gen")
    if kind is None:
        raise NoRuleError(f"solve(…, assume_a={assume_a!r}) has no rule; it is one of {', '.join(_KINDS)}")
    if kind in ("upper", "lower"):
        return solve_triangular(a, b, trans=1 if transposed else 0, lower=kind == "lower")
    if kind != "general":
        a = _from_triangle(a, lower=lower, hermitian=kind == "hermitian")
    if transposed:
        a = np.swapaxes(a, -1, -2)
    return _with_columns(b, lambda right: systems.solve(a, right))


_KINDS = {
    "gen": "general",
    "general": "general",
    "sym": "symmetric",
    "symmetric": "symmetric",
    "her": "hermitian",
    "hermitian": "hermitian",
    "pos": "hermitian",
    "positive definite": "hermitian",
    "upper triangular": "upper",
    "lower triangular": "lower",
}


def _from_triangle(a: Any, *, lower: bool, hermitian: bool) -> Any:
    read = a if lower else np.swapaxes(a, -1, -2)
    below = strictly_lower(read)
    diagonal = np.tril(read) - below
    other = adjoint(below) if hermitian else np.swapaxes(below, -1, -2)
    whole = below + diagonal + other
    return whole if lower else np.swapaxes(whole, -1, -2)


def _with_columns(b: Any, solve_columns: Any) -> Any:
    """A vector as a matrix of one column, and back."""
    return solve_columns(np.expand_dims(b, 1))[..., 0] if np.ndim(b) == 1 else solve_columns(b)


@_in_scipy
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True, **options: Any) -> Any:
    """Inverse of a square matrix."""
    if options.get("assume_a") not in (None, "gen", "general"):
        raise NoRuleError(f"inv(…, assume_a={options['assume_a']!r}) has no rule; leave assume_a out")
    return systems.inv(asarray(a))


@_in_scipy
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Determinant of a square matrix."""
    return determinants.det(asarray(a))


@_in_scipy
def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    """Pseudoinverse of a matrix."""
    if atol is not None or return_rank:
        raise TracingError("pinv(…, atol=…, return_rank=…) has no rule; leave them out")
    a = asarray(a)
    tolerance = max(np.shape(a)[-2:]) * float(np.finfo(a.dtype).eps) if rtol is None else float(rtol)
    return pseudoinverse.pinv(a, rtol=tolerance, hermitian=False)


# --- factorizations -------------------------------------------------------------------------------------------------
@_in_scipy
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Cholesky factor, the upper one unless `lower`."""
    a = asarray(a)
    return factorizations.cholesky(a) if lower else adjoint(factorizations.cholesky(adjoint(a)))


@_in_scipy
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Cholesky factor for `cho_solve`; the triangle that is not read is zero."""
    return cholesky(a, lower=lower), lower


@_in_scipy
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Solve with a factor of `cho_factor`."""
    c, lower = c_and_lower
    first = solve_triangular(c, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(c, first, trans=2 if lower else 0, lower=lower)


@_in_scipy
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """LU factors in one matrix, and pivots."""
    return lu_rules.lu_factor(asarray(a))


@_in_scipy
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Solve with factors of `lu_factor`."""
    factors, pivots = lu_and_piv
    order = lu_rules.permutation(pivots)
    if trans == 0:
        first = solve_triangular(factors, asarray(b)[order], lower=True, unit_diagonal=True)
        return solve_triangular(factors, first)
    first = solve_triangular(factors, b, trans=trans)
    return solve_triangular(factors, first, trans=trans, lower=True, unit_diagonal=True)[np.argsort(order)]


@_in_scipy
def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, **options: Any) -> Any:
    """Factors p, l, u with a = p l u."""
    if any(options.values()):
        raise TracingError(f"lu(…, {', '.join(options)}) has no rule; leave it out")
    factors, pivots = lu_rules.lu_factor(asarray(a))
    places = np.argsort(lu_rules.permutation(pivots))
    lower, upper = lu_rules.lower_factor(factors), lu_rules.upper_factor(factors)
    if permute_l:
        return lower[places], upper
    return np.eye(np.shape(a)[-1], dtype=factors.dtype)[places], lower, upper


@_in_scipy
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """QR factors; `mode="economic"` for matrices with more rows than columns."""
    if pivoting:
        raise TracingError("qr(…, pivoting=True) has no rule; leave it out")
    if mode not in ("full", "economic", "r"):
        raise TracingError(f"qr(…, mode={mode!r}) has no rule; it is 'economic', 'r', or 'full' of a wide matrix")
    a = asarray(a)
    rows, columns = np.shape(a)[-2:]
    if mode != "economic" and rows > columns:
        raise TracingError(
            f"qr(…, mode={mode!r}) of a tall matrix completes the basis arbitrarily; use mode='economic'"
        )
    result = linalg.qr(a)
    return (result.R,) if mode == "r" else tuple(result)


@_in_scipy
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Singular value decomposition."""
    result = linalg.svd(asarray(a), full_matrices, compute_uv)
    return tuple(result) if compute_uv else result


@_in_scipy
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Singular values."""
    return singular.svdvals(asarray(a))


# --- eigenvalues ----------------------------------------------------------------------------------------------------
@_in_scipy
def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    type: int = 1,  # noqa: A002
    **options: Any,
) -> Any:
    """Eigenvalues and vectors of a Hermitian matrix, or of a pair: a v = w b v with v^H b v = 1."""
    wanted = {name: value for name, value in options.items() if name in _SUBSETS and value is not None}
    if wanted or type != 1:
        raise TracingError(f"eigh(…, {', '.join(wanted) or 'type'}=…) has no rule; leave it out")
    a = asarray(a)
    if b is None:
        return eigen.eigvalsh(a, lower=bool(lower)) if eigvals_only else eigen.eigh(a, lower=bool(lower))
    whole = _from_triangle(a, lower=lower, hermitian=True)
    factor = factorizations.cholesky(_from_triangle(asarray(b), lower=lower, hermitian=True))
    half = triangular.solve_triangular(factor, whole, trans=0, lower=True, unit_diagonal=False)
    inner = adjoint(triangular.solve_triangular(factor, adjoint(half), trans=0, lower=True, unit_diagonal=False))
    if eigvals_only:
        return eigen.eigvalsh(inner, lower=True)
    w, v = eigen.eigh(inner, lower=True)
    return w, triangular.solve_triangular(factor, v, trans=2, lower=True, unit_diagonal=False)


_SUBSETS = ("subset_by_index", "subset_by_value")


@_in_scipy
def eigvalsh(a: Any, b: Any = None, *, lower: bool = True, type: int = 1, **options: Any) -> Any:  # noqa: A002
    """Eigenvalues of a Hermitian matrix, or of a pair."""
    return eigh(a, b, lower=lower, eigvals_only=True, type=type, **options)


@_in_scipy
def eigvals(a: Any, b: Any = None, overwrite_a: bool = False, check_finite: bool = True, **options: Any) -> Any:
    """Eigenvalues of a square matrix, complex whether they need it or not."""
    if b is not None or any(options.values()):
        raise TracingError("eigvals of a pair of matrices has no rule; solve b^-1 a")
    return eigen.eigvals(asarray(a)) + 0j


# --- functions of matrices ------------------------------------------------------------------------------------------
@_in_scipy
def expm(A: Any) -> Any:  # noqa: N803 (SciPy's names, here and below)
    """Exponential of a square matrix."""
    return exponential.expm(asarray(A))


@_in_scipy
def expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True, check_finite: bool = True) -> Any:  # noqa: N803
    """Fréchet derivative of the exponential at A along E."""
    derivative = exponential.expm_frechet(asarray(A), asarray(E))
    return (expm(A), derivative) if compute_expm else derivative


@_in_scipy
def sqrtm(A: Any, disp: Any = True, blocksize: Any = 64) -> Any:  # noqa: N803
    """Principal square root of a square matrix."""
    return sylvester.sqrtm(asarray(A))


@_in_scipy
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Solve a x + x b = q."""
    return sylvester.solve_sylvester(asarray(a), asarray(b), asarray(q))


@_in_scipy
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """Solve a x + x a^H = q."""
    a = asarray(a)
    return sylvester.solve_sylvester(a, adjoint(a), asarray(q))


# --- norms and special matrices -------------------------------------------------------------------------------------
@_in_scipy
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:  # noqa: A002
    """Norm of a vector or a matrix."""
    return norms.norm(asarray(a), ord, axis, keepdims)


@_in_scipy
def block_diag(*arrs: Any) -> Any:
    """Matrices along the diagonal, zeros beside them."""
    blocks = [np.atleast_2d(asarray(block)) for block in arrs] or [np.zeros((1, 0))]
    if any(np.ndim(block) != 2 for block in blocks):
        raise ValueError("block_diag takes matrices, vectors and numbers, no stacks")
    width = sum(np.shape(block)[1] for block in blocks)
    rows, left = [], 0
    for block in blocks:
        height, own = np.shape(block)
        before, after = np.zeros((height, left), block.dtype), np.zeros((height, width - left - own), block.dtype)
        rows.append(np.concatenate([before, block, after], axis=1))
        left += own
    return np.concatenate(rows, axis=0)


@_in_scipy
def toeplitz(c: Any, r: Any = None) -> Any:
    """Matrix of constant diagonals, from its first column and its first row (the conjugate of c, if not given)."""
    column = np.ravel(asarray(c))
    row = conjugate(column) if r is None else np.ravel(asarray(r))
    height, width = np.shape(column)[0], np.shape(row)[0]
    diagonals = np.concatenate([column[::-1], row[1:]])
    return diagonals[height - 1 - np.arange(height)[:, None] + np.arange(width)]


@_in_scipy
def circulant(c: Any) -> Any:
    """Matrix whose columns are rotations of a vector."""
    c = np.ravel(asarray(c))
    places = np.arange(np.shape(c)[0])
    return c[places[:, None] - places]


__getattr__, __dir__ = the_rest_of("scipy.linalg", __name__)
