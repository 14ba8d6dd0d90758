"""Linear systems and inverses.

    x = a^-1 b:     dx = a^-1 (db - da x),        b_bar = a^-T x_bar,  a_bar = -b_bar x^T
    y = a^-1:       dy = -y da y,                 a_bar = -y^T y_bar y^T

Saved: the operands and the result. The factorization is NumPy's and is not kept: NumPy offers no way to solve with it.
Reference: Giles (2008), sections 2.2.3 and 2.3.1.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.types import ArrayType
from pullback.rules.matrices import MatrixFunction, matrix_dtype, matrix_type, stack_shape, transposed


def _solve_type(a: ArrayType, b: ArrayType) -> tuple[ArrayType, ...]:
    matrix_type("solve", a, square=True)
    matrix_type("solve", b)
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"solve: a right side of shape {b.shape} does not fit matrices of shape {a.shape}")
    stack = np.broadcast_shapes(stack_shape(a), stack_shape(b))
    return (ArrayType((*stack, *b.shape[-2:]), matrix_dtype("solve", a, b)),)


def _push_solve(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> Any:
    da, db = tangents
    a, _ = operands
    if da is None:
        return solve(a, np.broadcast_to(db, np.shape(y)))
    moved = np.matmul(da, y)
    return solve(a, -moved if db is None else db - moved)


def _pull_solve(needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any]) -> tuple[Any, Any]:
    b_bar = solve(transposed(operands[0]), y_bar)
    return (-np.matmul(b_bar, transposed(y)) if needed[0] else None, b_bar)


solve = MatrixFunction("solve", np.linalg.solve, _solve_type, _push_solve, _pull_solve)
inv = MatrixFunction(
    "inv",
    np.linalg.inv,
    lambda a: (matrix_type("inv", a, square=True),),
    lambda tangents, y, operands: -np.matmul(np.matmul(y, tangents[0]), y),
    lambda needed, v, y, operands: (-np.matmul(np.matmul(transposed(y), v), transposed(y)),),
)

cases(solve, normal(3, 3), normal(3, 2))
cases(solve, normal(2, 3, 3), normal(3, 1), because="one right side for a stack")
cases(solve, normal(2, 1, 3, 3), normal(4, 3, 2), because="stacks that broadcast")
cases(inv, normal(3, 3))
cases(inv, normal(2, 3, 3), because="a stack")
