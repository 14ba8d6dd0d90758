"""The matrix exponential and its Fréchet derivative, L(a, e), the change of exp(a) when a moves along e.

da moves exp(a) by L(a, da), and a_bar = L(a^T, y_bar). The derivative of L itself is read off exponentials of twice the
size, exp [[a, e], [0, a]] = [[exp(a), L(a, e)], [0, exp(a)]], so that every order of derivative is there.
References: A. Al-Mohy, N. Higham, Computing the Fréchet derivative of the matrix exponential (2009); R. Mathias,
A chain rule for matrix functions and applications (1996).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from pullback.core.cases import cases, normal
from pullback.core.types import ArrayType
from pullback.rules.matrices import MatrixFunction, matrix_dtype, matrix_type, stack_shape, transposed
from pullback.rules.stacks import over_stacks


@over_stacks
def _frechet(a: Any, e: Any) -> Any:
    dtype = np.result_type(a, e)
    derivative = scipy.linalg.expm_frechet(a.astype(dtype), e.astype(dtype), compute_expm=False, check_finite=False)
    return derivative.astype(dtype)


def _frechet_type(a: ArrayType, e: ArrayType) -> tuple[ArrayType, ...]:
    stack = np.broadcast_shapes(stack_shape(a), stack_shape(e))
    return (ArrayType((*stack, *a.shape[-2:]), matrix_dtype("expm_frechet", a, e)),)


def _doubled(a: Any, e: Any) -> Any:
    """The matrix [[a, e], [0, a]]."""
    shape = np.broadcast_shapes(np.shape(a), np.shape(e))
    a, e = np.broadcast_to(a, shape), np.broadcast_to(e, shape)
    upper = np.concatenate([a, e], axis=-1)
    lower = np.concatenate([np.zeros(shape, a.dtype), a], axis=-1)
    return np.concatenate([upper, lower], axis=-2)


def _push_frechet(tangents: Sequence[Any], y: Any, operands: Sequence[Any]) -> Any:
    (da, de), (a, e) = tangents, operands
    if da is None:
        return expm_frechet(a, de)
    n = np.shape(a)[-1]
    direction = _doubled(da, np.zeros(np.shape(y), y.dtype) if de is None else de)
    return expm_frechet(_doubled(a, e), direction)[..., :n, n:]


def _pull_frechet(needed: Sequence[bool], v: Any, y: Any, operands: Sequence[Any]) -> tuple[Any, Any]:
    a, e = operands
    if not needed[0]:
        return (None, expm_frechet(transposed(a), v))
    n = np.shape(a)[-1]
    whole = expm_frechet(transposed(_doubled(a, e)), _in_corner(v))
    return (whole[..., :n, :n] + whole[..., n:, n:], whole[..., :n, n:])


def _in_corner(v: Any) -> Any:
    """The matrix [[0, v], [0, 0]]."""
    zeros = np.zeros(np.shape(v), v.dtype)
    upper, lower = np.concatenate([zeros, v], axis=-1), np.concatenate([zeros, zeros], axis=-1)
    return np.concatenate([upper, lower], axis=-2)


expm_frechet = MatrixFunction("expm_frechet", _frechet, _frechet_type, _push_frechet, _pull_frechet)
expm = MatrixFunction(
    "expm",
    scipy.linalg.expm,
    lambda a: (matrix_type("expm", a, square=True),),
    lambda tangents, y, operands: expm_frechet(operands[0], tangents[0]),
    lambda needed, v, y, operands: (expm_frechet(transposed(operands[0]), v),),
)

cases(expm, normal(3, 3))
cases(expm, normal(2, 2, 2), because="a stack")
cases(expm_frechet, normal(2, 2), normal(2, 2))
