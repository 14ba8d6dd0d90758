"""LU factorization with pivots, p a = l u, l and u in one matrix as LAPACK keeps them.

The pivots move in steps. With X = l^-1 (p da) u^-1:  dl = l strictly_lower(X),  du = upper(X) u;
(p a)_bar = l^-T (strictly_lower(l^T l_bar) + upper(u_bar u^T)) u^-T.
Reference: F. de Hoog, R. Anderssen, M. Lukas, Differentiation of matrix functionals using triangular factorization (2011).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from pullback.core.cases import tested_in
from pullback.core.types import ArrayType
from pullback.rules.matrices import MatrixFunction, identity_like, matrix_type, strictly_lower, transposed
from pullback.rules.triangular import solve_triangular


def _factor(a: Any) -> tuple[Any, Any]:
    lu, pivots = scipy.linalg.lu_factor(a, check_finite=False)
    return lu, pivots


def _lu_type(a: ArrayType) -> tuple[ArrayType, ...]:
    type_ = matrix_type("lu_factor", a, square=True)
    if len(a.shape) > 2:
        raise ValueError(f"lu_factor takes one matrix, not a stack of shape {a.shape}")
    return (type_, ArrayType(a.shape[-1:], np.dtype(np.int32)))


def _order(pivots: Any) -> Any:
    order = np.arange(pivots.shape[-1])
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    return order


def lower_factor(lu: Any) -> Any:
    """The factor l, with ones on its diagonal."""
    return strictly_lower(lu) + identity_like(lu)


def upper_factor(lu: Any) -> Any:
    """The factor u."""
    return lu - strictly_lower(lu)


def _push(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> tuple[Any, None]:
    lu, pivots = y
    moved = tangents[0][permutation(pivots)]
    x = solve_triangular(lu, moved, trans=0, lower=True, unit_diagonal=True)
    x = transposed(solve_triangular(lu, transposed(x), trans=1, lower=False, unit_diagonal=False))
    lower = strictly_lower(x)
    return (np.matmul(lower_factor(lu), lower) + np.matmul(x - lower, upper_factor(lu)), None)


def _pull(needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any]) -> tuple[Any]:
    lu, pivots = y
    lu_bar, _ = y_bar
    if lu_bar is None:
        return (None,)
    lower_bar = strictly_lower(lu_bar)
    right = np.matmul(lu_bar - lower_bar, transposed(upper_factor(lu)))
    inner = strictly_lower(np.matmul(transposed(lower_factor(lu)), lower_bar)) + right - strictly_lower(right)
    x = solve_triangular(lu, inner, trans=1, lower=True, unit_diagonal=True)
    x = transposed(solve_triangular(lu, transposed(x), trans=0, lower=False, unit_diagonal=False))
    return (x[np.argsort(permutation(pivots))],)


# The rows of a in the order of p a.
permutation = MatrixFunction(
    "permutation",
    _order,
    lambda pivots: (ArrayType(pivots.shape, np.dtype(np.intp)),),
    lambda tangents, y, operands: y * 0,
    lambda needed, v, y, operands: (None,),
    stacks=False,
)
permutation.moves = False
lu_factor = MatrixFunction("lu_factor", _factor, _lu_type, _push, _pull, results=2, stacks=False)
tested_in("scipy/test_linalg.py", "lu_factor")
