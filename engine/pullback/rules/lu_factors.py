"""Systems by way of their factors: what plans make of `solve`, `inv` and `slogdet`, so that one factorization serves all.

    factors, order, parity = lu(a)      a[order] = l u, with partial pivoting
    x = lu_solve(factors, order, b)     a x = b, or its transpose

`factors` has l (without the ones on its diagonal) and u in one matrix, transposed: LAPACK's layout as NumPy sees it.
`order` has the rows of a in the order of pivots, `parity` is 1 or -1, the determinant of that permutation.

Only plans contain these rules, after everything was differentiated, so they have no derivatives of their own.
A zero on the diagonal of u is found by `lu_solve`; a determinant is right there.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from pullback.core.cases import tested_in
from pullback.core.types import ArrayType
from pullback.errors import DifferentiationError
from pullback.rules.matrices import MatrixFunction, matrix_type, stack_shape
from pullback.rules.systems import solve

ORDER_DTYPE = np.dtype(np.int32)


def _factor(a: Any) -> tuple[Any, Any, Any]:
    if a.ndim == 2:
        return _factor_one(a)
    stack, size = a.shape[:-2], a.shape[-1]
    factors, order = np.empty(a.shape, a.dtype), np.empty((*stack, size), ORDER_DTYPE)
    parity = np.empty(stack, a.dtype)
    for place in np.ndindex(stack):
        factors[place], order[place], parity[place] = _factor_one(a[place])
    return factors, order, parity


def _factor_one(a: Any) -> tuple[Any, Any, Any]:
    from scipy.linalg import lapack  # noqa: PLC0415 (SciPy is loaded when it is first needed)

    factors_t, swaps, _ = (lapack.sgetrf if a.dtype == np.float32 else lapack.dgetrf)(a)
    rows, parity = list(range(len(a))), 1
    for row, other in enumerate(swaps.tolist()):
        if row != other:
            rows[row], rows[other] = rows[other], rows[row]
            parity = -parity
    return factors_t.T, np.array(rows, ORDER_DTYPE), a.dtype.type(parity)


def _factor_types(a: ArrayType) -> tuple[ArrayType, ...]:
    type_ = matrix_type("lu", a, square=True)
    stack = stack_shape(a)
    return (type_, ArrayType((*stack, a.shape[-1]), ORDER_DTYPE), ArrayType(stack, type_.dtype))


def _solve(factors: Any, order: Any, b: Any, *, trans: bool) -> Any:
    if factors.ndim == 2 == b.ndim:
        return _solve_one(factors, order, b, trans=trans)
    stack = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    factors = np.broadcast_to(factors, (*stack, *factors.shape[-2:]))
    order = np.broadcast_to(order, (*stack, order.shape[-1]))
    b = np.broadcast_to(b, (*stack, *b.shape[-2:]))
    x = np.empty(b.shape, factors.dtype)
    for place in np.ndindex(stack):
        x[place] = _solve_one(factors[place], order[place], b[place], trans=trans)
    return x


def _solve_one(factors: Any, order: Any, b: Any, *, trans: bool) -> Any:
    from scipy.linalg import lapack  # noqa: PLC0415 (SciPy is loaded when it is first needed)

    if not factors.diagonal().all():
        raise np.linalg.LinAlgError("Singular matrix")
    substitute = lapack.sgetrs if factors.dtype == np.float32 else lapack.dgetrs
    in_order = np.arange(len(factors))
    if not trans:
        return np.ascontiguousarray(substitute(factors.T, in_order, b[order])[0])
    x = np.empty(b.shape, factors.dtype)
    x[order] = substitute(factors.T, in_order, b, trans=1)[0]
    return x


def _solve_types(factors: ArrayType, order: ArrayType, b: ArrayType, *, trans: bool) -> tuple[ArrayType, ...]:
    return solve.infer(factors, b)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise DifferentiationError("the factors of a plan have no derivative; differentiate the function it came from")


class _PlanFunction(MatrixFunction):
    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> NoReturn:
        """Refuse: gradients are taken before."""
        _refuse()


lu = _PlanFunction("lu", _factor, _factor_types, _refuse, _refuse, results=3)
lu_solve = _PlanFunction("lu_solve", _solve, _solve_types, _refuse, _refuse)
tested_in("passes/test_systems.py", "lu", "lu_solve")
