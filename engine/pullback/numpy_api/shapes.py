"""Shapes: reshape, transpose, broadcast and their many names."""

from typing import Any

import numpy as np

from pullback.numpy_api.operands import as_operand, normalized_axis
from pullback.numpy_api.translations import implements, normalized_axes, refuse
from pullback.rules import shapes


@implements(np.shape)
def shape(a: Any) -> Any:
    return a.shape


@implements(np.ndim)
def ndim(a: Any) -> Any:
    return a.ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> Any:
    if axis is None:
        return a.size
    return int(np.prod([a.shape[place] for place in normalized_axes(axis, a.ndim)], dtype=np.int64))


@implements(np.reshape)
def reshape(a: Any, shape: Any = None, order: str = "C", *, copy: Any = None) -> Any:
    refuse("numpy.reshape", copy=copy)
    if shape is None:
        raise TypeError("numpy.reshape needs a shape")
    wanted = _known_shape(shape, np.size(a))
    if order == "F":
        return transpose(reshape(transpose(a), wanted[::-1]))
    refuse("numpy.reshape", order=None if order == "C" else order)
    return a if wanted == np.shape(a) else shapes.reshape(a, shape=wanted)


def _known_shape(shape: Any, size: int) -> tuple[int, ...]:
    """The shape with a length of -1 worked out."""
    wanted = tuple(int(length) for length in (shape if isinstance(shape, tuple | list) else (shape,)))
    if wanted.count(-1) != 1:
        return wanted
    known = -int(np.prod(wanted, dtype=np.int64))
    return tuple(size // known if length == -1 and known else length for length in wanted)


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


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    lengths = np.shape(a)
    if axis is None:
        return reshape(a, tuple(length for length in lengths if length != 1))
    places = normalized_axes(axis, len(lengths))
    if any(lengths[place] != 1 for place in places):
        raise ValueError(f"cannot squeeze axis {axis} of an array of shape {lengths}: its length is not one")
    return reshape(a, tuple(length for place, length in enumerate(lengths) if place not in places))


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    return _each(arys, lambda x: reshape(x, (1,)) if np.ndim(x) == 0 else x)


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    return _each(arys, lambda x: reshape(x, (1, np.size(x))) if np.ndim(x) < 2 else x)


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    return _each(arys, three_dimensional)


def three_dimensional(x: Any) -> Any:
    """A vector as one row of depth one, a matrix with depth one."""
    if np.ndim(x) < 2:
        return reshape(x, (1, np.size(x), 1))
    return expand_dims(x, 2) if np.ndim(x) == 2 else x


def _each(arrays: tuple[Any, ...], change: Any) -> Any:
    results = tuple(change(as_operand(x)) for x in arrays)
    return results[0] if len(results) == 1 else results


@implements(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Any:
    ndim = np.ndim(a)
    order = tuple(range(ndim))[::-1] if axes is None else np.lib.array_utils.normalize_axis_tuple(axes, ndim)
    if len(order) != ndim:
        raise ValueError(f"axes {axes} are not an order of the {ndim} axes of the array")
    return a if order == tuple(range(ndim)) else shapes.transpose(a, axes=tuple(order))


@implements(np.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    if np.ndim(x) < 2:
        raise ValueError("numpy.matrix_transpose needs at least two dimensions")
    return swapaxes(x, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(np.ndim(a)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return transpose(a, tuple(order))


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    ndim = np.ndim(a)
    sources = np.lib.array_utils.normalize_axis_tuple(source, ndim, "source")
    destinations = np.lib.array_utils.normalize_axis_tuple(destination, ndim, "destination")
    if len(sources) != len(destinations):
        raise ValueError("numpy.moveaxis needs as many destinations as sources")
    order = [axis for axis in range(ndim) if axis not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return transpose(a, tuple(order))


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    ndim = np.ndim(a)
    axis = normalized_axis(axis, ndim)
    start = start + ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    del subok
    wanted = tuple(map(int, shape)) if isinstance(shape, tuple | list) else (int(shape),)
    return array if wanted == np.shape(array) else shapes.broadcast_to(array, shape=wanted)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    operands = [as_operand(x) for x in args]
    wanted = np.broadcast_shapes(*(np.shape(x) for x in operands))
    return tuple(broadcast_to(x, wanted, subok) for x in operands)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The array in another dtype; a value that is never written to needs no copy."""
    del copy
    refuse("numpy.astype", device=device)
    wanted = np.dtype(dtype)
    return x if x.dtype == wanted else shapes.astype(x, dtype=wanted)


implements(np.astype)(astype)


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """Traced values are never written to: one is as good as its copy."""
    del order, subok
    return a


def in_line(a: Any, axis: Any) -> tuple[Any, int]:
    """The array and its axis, non-negative; without one the array in one line. A number has one axis, of length one."""
    a = as_operand(a)
    if axis is None or np.ndim(a) == 0:
        return ravel(a), 0 if axis is None else normalized_axis(axis, 1)
    return a, normalized_axis(axis, np.ndim(a))
