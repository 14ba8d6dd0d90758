"""NumPy functions that are not ufuncs, in terms of primitives. The signatures are NumPy's; what is not honoured is refused."""

from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.numpy_api.table import implements, normalized_axes, refuse
from pullback.rules import elementwise, reductions, shapes
from pullback.rules.contractions import matmul


@implements(np.sum)
def sum_(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    refuse("numpy.sum", dtype=dtype, out=out)
    axes = normalized_axes(axis, np.ndim(a))
    if not axes:
        summed = np.add.reduce(np.ones(1, a.dtype)).dtype  # truth values and small integers become integers
        return a if a.dtype == summed else shapes.astype(a, dtype=summed)
    return reductions.sum_(a, axes=axes, keepdims=bool(keepdims))


@implements(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    refuse("numpy.mean", dtype=dtype, out=out)
    axes = normalized_axes(axis, np.ndim(a))
    count = 1
    for reduced in axes:
        count *= np.shape(a)[reduced]
    if a.dtype == np.float16:  # summed in single precision, as NumPy does: 100 times 1000 is too large for half
        wide = shapes.astype(a, dtype=np.dtype(np.float32))
        return shapes.astype(sum_(wide, axis=axes, keepdims=keepdims) / count, dtype=np.dtype(np.float16))
    return sum_(a, axis=axes, keepdims=keepdims) / count


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    refuse("numpy.dot", out=out)
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return elementwise.mul(a, b)
    if np.ndim(b) > 2:
        raise TracingError("numpy.dot of a stack of matrices sums differently from numpy.matmul; write it with matmul")
    return matmul(a, b)


@implements(np.reshape)
def reshape(a: Any, shape: Any = None, order: str = "C", *, copy: Any = None) -> Any:
    refuse("numpy.reshape", order=None if order == "C" else order, copy=copy)
    size = np.size(a)
    wanted = tuple(int(length) for length in (shape if isinstance(shape, tuple | list) else (shape,)))
    if -1 in wanted:
        known = -int(np.prod(wanted, dtype=np.int64))
        wanted = tuple(size // known if length == -1 and known else length for length in wanted)
    return a if wanted == np.shape(a) else shapes.reshape(a, shape=wanted)


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Any:
    return reshape(a, (np.size(a),), order)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = np.ndim(a) + len(axes)
    places = normalized_axes(tuple(axes), ndim)
    kept = iter(np.shape(a))
    return reshape(a, tuple(1 if place in places else next(kept) for place in range(ndim)))


@implements(np.transpose)
def transpose(a: Any, axes: Any = None) -> Any:
    ndim = np.ndim(a)
    order = tuple(range(ndim))[::-1] if axes is None else np.lib.array_utils.normalize_axis_tuple(axes, ndim)
    return a if order == tuple(range(ndim)) else shapes.transpose(a, axes=tuple(order))


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(np.ndim(a)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return transpose(a, tuple(order))


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    del subok
    wanted = tuple(map(int, shape)) if isinstance(shape, tuple | list) else (int(shape),)
    return array if wanted == np.shape(array) else shapes.broadcast_to(array, shape=wanted)


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise TracingError(
            "numpy.where with one argument has a shape that depends on values; pass both branches: where(c, x, y)"
        )
    return elementwise.where(condition, x, y)


@implements(np.shape)
def shape(a: Any) -> Any:
    return a.shape


@implements(np.ndim)
def ndim(a: Any) -> Any:
    return a.ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> Any:
    return a.size if axis is None else a.shape[axis]


@implements(np.zeros_like)
def zeros_like(a: Any, **keywords: Any) -> Any:
    """Zeros do not depend on their model: an ordinary array."""
    return np.zeros(**_like(a, keywords))


@implements(np.ones_like)
def ones_like(a: Any, **keywords: Any) -> Any:
    return np.ones(**_like(a, keywords))


def _like(a: Any, keywords: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in keywords.items() if value is not None}
    return {"shape": a.shape, "dtype": a.dtype, **given}


@implements(np.result_type)
def result_type(*operands: Any) -> Any:
    return np.result_type(*(getattr(operand, "dtype", operand) for operand in operands))
