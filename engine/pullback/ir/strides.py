"""Strides and offsets of views in elements, found by NumPy on arrays that have no memory.

What a graph does to a value is done to an array whose elements have no bytes. Such an array can have any strides, and
nothing that is done to it can read or write: an element, too, is nothing but a place.
"""

from typing import Any, TypeAlias

import numpy as np

from pullback.core.types import Shape

#: An array of places: its strides count elements.
PlaceArray: TypeAlias = np.ndarray[Any, Any]

_NO_BYTES: np.dtype[Any] = np.dtype([])


def contiguous_strides(shape: Shape) -> tuple[int, ...]:
    """Strides in elements of an array in C order."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def places(shape: Shape, strides: tuple[int, ...] | None = None) -> PlaceArray:
    """The places of an array with these strides, in C order where there are none."""
    strides = contiguous_strides(shape) if strides is None else strides
    return np.lib.stride_tricks.as_strided(np.empty(1, _NO_BYTES), shape, strides)


def selected(array: PlaceArray, key: Any) -> PlaceArray:
    """The view that a basic key selects; an array also where it is one element."""
    parts = key if isinstance(key, tuple) else (key,)
    return array[parts if Ellipsis in parts else (*parts, ...)]


def offset(view: PlaceArray, array: PlaceArray) -> int:
    """Elements from the first one of an array to the first one of a view of it."""
    return _address(view) - _address(array)


def is_in_order(array: PlaceArray) -> bool:
    """True if elements follow each other in C order."""
    in_order = contiguous_strides(array.shape)
    same = (size == 1 or own == other for size, own, other in zip(array.shape, array.strides, in_order, strict=True))
    return array.size == 0 or all(same)


def _address(array: PlaceArray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
