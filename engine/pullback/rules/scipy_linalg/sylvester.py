"""Sylvester's equation, a x + x b = q, and the matrix square root, s s = a, whose derivative solves one.

dx = syl(a, b, dq - da x - x db),  q_bar = syl(a^T, b^T, x_bar),  a_bar = -q_bar x^T,  b_bar = -x^T q_bar;
ds = syl(s, s, da),  a_bar = syl(s^T, s^T, s_bar).
Reference: N. Higham, Functions of Matrices (2008), section 6.1.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from pullback.core.cases import cases, normal, tested_in
from pullback.core.types import ArrayType
from pullback.errors import NeedsValueError
from pullback.rules.matrices import MatrixFunction, matrix_dtype, matrix_type, stack_shape, transposed
from pullback.rules.stacks import over_stacks


def _sylvester_type(a: ArrayType, b: ArrayType, q: ArrayType) -> tuple[ArrayType, ...]:
    for square in (a, b):
        matrix_type("solve_sylvester", square, square=True)
    if q.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ValueError(f"solve_sylvester: q of shape {q.shape} does not fit a and b of {a.shape} and {b.shape}")
    stack = np.broadcast_shapes(stack_shape(a), stack_shape(b), stack_shape(q))
    return (ArrayType((*stack, *q.shape[-2:]), matrix_dtype("solve_sylvester", a, b, q)),)


def _push_sylvester(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> Any:
    (da, db, dq), (a, b, _) = tangents, operands
    right = np.zeros(np.shape(y), y.dtype) if dq is None else dq
    if da is not None:
        right = right - np.matmul(da, y)
    if db is not None:
        right = right - np.matmul(y, db)
    return solve_sylvester(a, b, right)


def _pull_sylvester(needed: Sequence[bool], v: Any, y: Any, operands: Sequence[Any]) -> tuple[Any, Any, Any]:
    a, b, _ = operands
    q_bar = solve_sylvester(transposed(a), transposed(b), v)
    y_t = transposed(y)
    return (
        -np.matmul(q_bar, y_t) if needed[0] else None,
        -np.matmul(y_t, q_bar) if needed[1] else None,
        q_bar,
    )


def _sqrtm_type(a: ArrayType) -> tuple[ArrayType, ...]:
    type_ = matrix_type("sqrtm", a, square=True)
    if type_.dtype.kind != "c":
        raise NeedsValueError("the square root of a real matrix is real or complex, depending on its values")
    return (type_,)


solve_sylvester = MatrixFunction(
    "solve_sylvester", over_stacks(scipy.linalg.solve_sylvester), _sylvester_type, _push_sylvester, _pull_sylvester
)
sqrtm = MatrixFunction(
    "sqrtm",
    over_stacks(scipy.linalg.sqrtm),
    _sqrtm_type,
    lambda tangents, y, operands: solve_sylvester(y, y, tangents[0]),
    lambda needed, v, y, operands: (solve_sylvester(transposed(y), transposed(y), v),),
)

cases(solve_sylvester, normal(3, 3), normal(2, 2), normal(3, 2))
cases(solve_sylvester, normal(2, 3, 3), normal(2, 2), normal(2, 3, 2), because="a stack")
tested_in("scipy/test_linalg.py", "sqrtm")
