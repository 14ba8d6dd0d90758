"""Systems with a triangular matrix, op(a) x = b, where op is nothing, the transpose or the adjoint (trans 0, 1, 2).

dx = op(a)^-1 (db - op(da) x),  b_bar = op(a)^-T x_bar,  and the cotangent of op(a) is -b_bar x^T. Only the triangle that
is read has a cotangent, without its diagonal where that is taken as ones.
Reference: Giles (2008), section 2.3.1.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.types import ArrayType
from pullback.rules.matrices import MatrixFunction, adjoint, conjugate, transposed
from pullback.rules.stacks import over_stacks
from pullback.rules.systems import solve

#: For matrices of fewer rows NumPy's `solve` is faster than SciPy's functions, by what these cost in Python.
LEAST_ROWS = 16


@over_stacks
def _solve(a: Any, b: Any, *, trans: int, lower: bool, unit_diagonal: bool) -> Any:
    from scipy import linalg  # noqa: PLC0415 (SciPy is loaded when it is first needed)

    return linalg.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal, check_finite=False)


def _type(a: ArrayType, b: ArrayType, *, trans: int, lower: bool, unit_diagonal: bool) -> tuple[ArrayType, ...]:
    return solve.infer(a, b)


def _triangle(a: Any, *, lower: bool, unit_diagonal: bool) -> Any:
    """The triangle that is read of the matrix."""
    beside = int(unit_diagonal)
    return np.tril(a, -beside) if lower else np.triu(a, beside)


def _applied(a: Any, trans: int) -> Any:
    return a if trans == 0 else transposed(a) if trans == 1 else adjoint(a)


def _push(
    tangents: Sequence[Any], y: Any, operands: Sequence[Any], *, trans: int, lower: bool, unit_diagonal: bool
) -> Any:
    (da, db), (a, _) = tangents, operands
    right = None if db is None else np.broadcast_to(db, np.shape(y))
    if da is not None:
        moved = np.matmul(_applied(_triangle(da, lower=lower, unit_diagonal=unit_diagonal), trans), y)
        right = -moved if right is None else right - moved
    return solve_triangular(a, right, trans=trans, lower=lower, unit_diagonal=unit_diagonal)


def _pull(
    needed: Sequence[bool],
    v: Any,
    y: Any,
    operands: Sequence[Any],
    *,
    trans: int,
    lower: bool,
    unit_diagonal: bool,
) -> tuple[Any, Any]:
    a, _ = operands
    options = {"lower": lower, "unit_diagonal": unit_diagonal}
    if trans == 2:  # the transpose of the adjoint is the conjugate
        b_bar = conjugate(solve_triangular(a, conjugate(v), trans=0, **options))
    else:
        b_bar = solve_triangular(a, v, trans=1 - trans, **options)
    if not needed[0]:
        return (None, b_bar)
    return (
        _triangle(_applied(-np.matmul(b_bar, transposed(y)), trans), lower=lower, unit_diagonal=unit_diagonal),
        b_bar,
    )


solve_triangular = MatrixFunction("solve_triangular", _solve, _type, _push, _pull)


def _dominant(*shape: int) -> Any:
    return lambda rng: rng.normal(size=shape) + 3 * np.eye(shape[-1])


for _trans in (0, 1, 2):
    for _lower in (False, True):
        cases(solve_triangular, _dominant(3, 3), normal(3, 2), trans=_trans, lower=_lower, unit_diagonal=_trans == 1)
cases(
    solve_triangular,
    _dominant(2, 3, 3),
    normal(3, 1),
    trans=0,
    lower=True,
    unit_diagonal=False,
    because="one right side for a stack",
)
