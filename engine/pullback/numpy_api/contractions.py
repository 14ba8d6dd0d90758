"""Products of vectors, matrices and tensors, all by `matmul` between reshapes: one rule, and BLAS does the work."""

from typing import Any

import numpy as np

from pullback.numpy_api.operands import as_operand, number_of
from pullback.numpy_api.reductions import sum_
from pullback.numpy_api.selecting import diagonal
from pullback.numpy_api.shapes import expand_dims, moveaxis, ravel, reshape, transpose
from pullback.numpy_api.translations import implements, refuse
from pullback.rules import elementwise
from pullback.rules import shapes as elements
from pullback.rules.complex_numbers import conj
from pullback.rules.contractions import matmul


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    refuse("numpy.dot", out=out)
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return _scaled(a, b)
    a, b = as_operand(a), as_operand(b)
    return matmul(a, b) if np.ndim(b) <= 2 else tensordot(a, b, (-1, -2))


def _scaled(a: Any, b: Any) -> Any:
    """The product where one has no axes; NumPy makes arrays of both, so that a Python number has a dtype in promotion."""
    return np.multiply(*(elements.astype(as_operand(x), dtype=as_operand(x).dtype) for x in (a, b)))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    return matmul(conjugated(ravel(as_operand(a))), ravel(as_operand(b)))


def conjugated(x: Any) -> Any:
    """The complex conjugate; a real array is its own."""
    return conj(x) if x.dtype.kind == "c" else x


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return _scaled(a, b)
    return tensordot(a, b, (-1, -1))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    refuse("numpy.outer", out=out)
    return elementwise.mul(expand_dims(ravel(as_operand(a)), 1), ravel(as_operand(b)))


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = as_operand(a), as_operand(b)
    if isinstance(axes, int | np.integer):
        of_a, of_b = tuple(range(np.ndim(a) - axes, np.ndim(a))), tuple(range(axes))
    else:
        first, second = axes
        of_a = tuple(first) if isinstance(first, tuple | list | np.ndarray) else (first,)
        of_b = tuple(second) if isinstance(second, tuple | list | np.ndarray) else (second,)
    of_a = np.lib.array_utils.normalize_axis_tuple(of_a, np.ndim(a))
    of_b = np.lib.array_utils.normalize_axis_tuple(of_b, np.ndim(b))
    if [np.shape(a)[i] for i in of_a] != [np.shape(b)[i] for i in of_b]:
        raise ValueError(f"tensordot: shapes {np.shape(a)} and {np.shape(b)} do not fit along axes {axes}")
    free_a = [i for i in range(np.ndim(a)) if i not in of_a]
    free_b = [i for i in range(np.ndim(b)) if i not in of_b]
    shape = tuple(np.shape(a)[i] for i in free_a) + tuple(np.shape(b)[i] for i in free_b)
    length = number_of(np.shape(a)[i] for i in of_a)
    left = reshape(transpose(a, (*free_a, *of_a)), (number_of(np.shape(a)[i] for i in free_a), length))
    right = reshape(transpose(b, (*of_b, *free_b)), (length, number_of(np.shape(b)[i] for i in free_b)))
    return reshape(matmul(left, right), shape)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    a, b = as_operand(a), as_operand(b)
    ndim = max(np.ndim(a), np.ndim(b))
    of_a = (1,) * (ndim - np.ndim(a)) + np.shape(a)
    of_b = (1,) * (ndim - np.ndim(b)) + np.shape(b)
    left = reshape(a, tuple(part for length in of_a for part in (length, 1)))
    right = reshape(b, tuple(part for length in of_b for part in (1, length)))
    return reshape(np.multiply(left, right), tuple(m * n for m, n in zip(of_a, of_b, strict=True)))


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(as_operand(a), axisa, -1), moveaxis(as_operand(b), axisb, -1)
    if np.shape(a)[-1] != 3 or np.shape(b)[-1] != 3:
        raise ValueError("numpy.cross takes vectors of three components; write two-dimensional ones out")
    a0, a1, a2 = (a[..., i] for i in range(3))
    b0, b1, b2 = (b[..., i] for i in range(3))
    product = np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)
    return moveaxis(product, -1, axisc)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return sum_(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Products of vectors, the first conjugated, in stacks that broadcast."""
    a, b = moveaxis(as_operand(x1), axis, -1), moveaxis(as_operand(x2), axis, -1)
    product = matmul(expand_dims(conjugated(a), -2), expand_dims(b, -1))
    return reshape(product, np.shape(product)[:-2])


def matvec(x1: Any, x2: Any, /) -> Any:
    """Matrices times vectors, in stacks that broadcast."""
    if np.ndim(x1) < 2:
        raise ValueError(f"matvec: the first operand is a stack of matrices, got shape {np.shape(x1)}")
    product = matmul(as_operand(x1), expand_dims(as_operand(x2), -1))
    return reshape(product, np.shape(product)[:-1])


def vecmat(x1: Any, x2: Any, /) -> Any:
    """Vectors, conjugated, times matrices, in stacks that broadcast."""
    if np.ndim(x2) < 2:
        raise ValueError(f"vecmat: the second operand is a stack of matrices, got shape {np.shape(x2)}")
    product = matmul(expand_dims(conjugated(as_operand(x1)), -2), as_operand(x2))
    return reshape(product, (*np.shape(product)[:-2], np.shape(product)[-1]))


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = as_operand(a), as_operand(v)
    if np.size(a) < np.size(v):
        a, v = v, a
    return _slid(a, v[::-1], mode)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = as_operand(a), conjugated(as_operand(v))
    if np.size(a) < np.size(v):  # NumPy slides the shorter one and turns the result round
        return _slid(v, a, mode)[::-1]
    return _slid(a, v, mode)


def _slid(long: Any, short: Any, mode: str) -> Any:
    """Products of the short vector with every window of the long one; one product of a matrix and a vector."""
    if np.ndim(long) != 1 or np.ndim(short) != 1:
        raise ValueError("numpy.convolve and numpy.correlate take vectors")
    n, m = np.size(long), np.size(short)
    if m == 0:
        raise ValueError("numpy.convolve and numpy.correlate need elements in both vectors")
    around = {"full": (m - 1, m - 1), "same": (m // 2, m - 1 - m // 2), "valid": (0, 0)}.get(mode)
    if around is None:
        raise ValueError(f"mode is 'full', 'same' or 'valid', not {mode!r}")
    padded = np.pad(long, around) if any(around) else long
    count = n + sum(around) - m + 1
    windows = np.stack([padded[i : i + count] for i in range(m)])
    return matmul(short, windows)
