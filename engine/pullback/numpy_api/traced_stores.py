"""Stores into traced arrays, and views of them, as NumPy has them.

A value of a trace never changes. An array of a function does, so the object that stands for it points to its value: a store
`y[key] = v` makes a new value, `updated(y, key, v)`, and lets y point to it (`Contents`). A view remembers what it is a view of
and how it was made (`View`): after a store into its base it is made again when it is read, and a store into the view is one into
the base, at the places that the view shows (`memory_order`).
"""

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np

from pullback.core.ownership import is_held_once
from pullback.core.primitive import GIVEN, TracedValue, innermost_trace
from pullback.core.types import Shape
from pullback.numpy_api.call_sites import located
from pullback.numpy_api.masked_reads import MaskedRead
from pullback.numpy_api.memory_order import Contents, View, layout_of, single, version_of
from pullback.numpy_api.shapes import broadcast_to, reshape, transpose
from pullback.numpy_api.storing import fitting, in_dtype, updated
from pullback.rules.gathering import ARRAY
from pullback.rules.storing import set_at, writing_over

_Array = TypeVar("_Array", bound=TracedValue)


def given(array: _Array) -> _Array:
    """Mark an argument."""
    array.memory = GIVEN
    return array


# --- stores ----------------------------------------------------------------------------------------------------------
def store(array: Any, key: Any, value: Any) -> None:
    """`array[key] = value`."""
    root, layout = layout_of(array)
    if root is array:
        with writing_over(_alone(array)):
            new = updated(array, key, value)
        replace(array, new)
        return
    value = value if type(value) is MaskedRead else in_dtype(value, array.dtype, "unsafe")
    if _is_basic(key):
        _put(
            root, layout[(*(key if isinstance(key, tuple) else (key,)), *([] if _has_ellipsis(key) else [...]))], value
        )
    else:
        _put(root, layout, updated(array, key, value))


def _alone(array: Any) -> Any:
    """The plain array in memory that nothing but this traced array leads to, by CPython's counts of references; or None."""
    memory = array.memory
    if not isinstance(memory, Contents) or memory.born is not innermost_trace() or not is_held_once(memory, "value"):
        return None
    holder: Any = memory
    if isinstance(memory.value, TracedValue):
        if memory.value.traced_by is not memory.born or not hasattr(memory.value, "value"):
            return None
        holder = memory.value
    is_own = type(holder.value) is np.ndarray and holder.value.flags.owndata and holder.value.flags.writeable
    return holder.value if is_own and is_held_once(holder, "value") else None


def assign(array: Any, value: Any) -> None:
    """`array[...] = value`."""
    root, layout = layout_of(array)
    if root is array:
        replace(array, broadcast_to(fitting(in_dtype(value, array.dtype, "unsafe"), np.shape(array)), np.shape(array)))
    else:
        _put(root, layout, in_dtype(value, array.dtype, "unsafe"))


def replace(array: Any, value: Any) -> None:
    """Let an array that has memory of its own hold another value."""
    memory = array.memory
    current = innermost_trace()
    if memory is GIVEN:
        raise located(
            "a store into an argument: NumPy would change the caller's array; write to a copy, x = x.copy(), and return it"
        )
    born = memory.born if isinstance(memory, Contents) else current if array.on_device else array.traced_by
    if born is not current:
        raise located(
            "a store into an array from around the function that is traced here, which would see it only once; "
            "make the array in this function, y = y.copy(), or pass it and return the new one"
        )
    if isinstance(memory, Contents):
        memory.value = single(value)
        memory.version += 1
    else:
        array.memory = Contents(single(value), current, version_of(array) + 1)


def _put(root: Any, layout: np.ndarray[Any, Any], value: Any) -> None:
    """Store a value at the places of a root that a layout shows."""
    if not layout.flags.writeable:
        raise ValueError("assignment destination is read-only")
    value = fitting(value, layout.shape)
    if not layout.size:
        return
    offset = layout.__array_interface__["data"][0] - _begin(layout)
    for shape in (np.shape(root), (np.size(root),)):  # as it is, or as one line
        found = _key(shape, offset, layout.shape, layout.strides)
        if found is not None:
            key, wide, order = found
            value = transpose(reshape(broadcast_to(value, layout.shape), wide), order)
            if shape == np.shape(root):
                store(root, key, value)
            else:
                replace(root, reshape(updated(reshape(root, shape), key, value), np.shape(root)))
            return
    places = np.full(layout.shape, offset)
    for axis, (size, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
        places += (np.arange(size) * stride).reshape(-1, *[1] * (layout.ndim - 1 - axis))
    line = reshape(root.current(), (np.size(root),))
    replace(root, reshape(set_at(line, value, places, key=(ARRAY,), unique=True), np.shape(root)))


def _begin(layout: Any) -> int:
    """The address of the first byte of the array that a layout describes."""
    while isinstance(layout.base, np.ndarray):
        layout = layout.base
    begin = layout.base if layout.base is not None else layout
    address: int = begin.__array_interface__["data"][0]
    return address


def _key(
    shape: Shape, offset: int, sizes: Shape, strides: tuple[int, ...]
) -> tuple[tuple[Any, ...], Shape, tuple[int, ...]] | None:
    """The basic key that selects these places of an array in C order, and the reshaping of the stored value to the selected axes.

    That is its shape without axes of length one, and then their order. None where no basic key selects them.
    """
    steps = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    starts = []
    for size, step in zip(shape, steps, strict=True):
        starts.append(offset // step % size)
        offset -= starts[-1] * step
    key: list[Any] = list(starts)
    wide = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size != 1]
    axes: list[int] = []
    for size, stride in wide:
        axis = next(
            (axis for axis, step in enumerate(steps) if shape[axis] > 1 and stride and stride % step == 0), None
        )
        if axis is None or axis in axes:
            return None
        start, step = starts[axis], stride // steps[axis]
        last = start + (size - 1) * step
        if not 0 <= last < shape[axis]:
            return None
        stop = last + (1 if step > 0 else -1)
        key[axis] = slice(start, stop if stop >= 0 else None, step)
        axes.append(axis)
    return tuple(key), tuple(size for size, _ in wide), tuple(sorted(range(len(axes)), key=axes.__getitem__))


def _is_basic(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None or part is Ellipsis or isinstance(part, slice | np.integer) or type(part) is int for part in parts
    )


def _has_ellipsis(key: Any) -> bool:
    return key is Ellipsis or (isinstance(key, tuple) and any(part is Ellipsis for part in key))


# --- views -----------------------------------------------------------------------------------------------------------
def viewed(base: Any, result: Any, show: Callable[[Any], Any], **further: Any) -> Any:
    """A result that NumPy gives as a view of the base; several are viewed one by one."""
    if isinstance(result, tuple | list):
        return type(result)(viewed(base, part, _part(show, number)) for number, part in enumerate(result))
    if not isinstance(base, TracedValue) or not isinstance(result, TracedValue) or result is base:
        return result
    now = result.current()
    result.memory = View(base, show, None if now is result else now, **further)
    return result


def _part(show: Callable[[Any], Any], number: int) -> Callable[[Any], Any]:
    return lambda array: show(array)[number]


def read_key(base: Any, key: Any, result: Any) -> Any:
    """The result of `base[key]`: a view where the key is of slices, as NumPy does; a number or a copy else."""
    if not _is_basic(key) or not (np.shape(result) or _has_ellipsis(key)):
        return result
    own = (*(key if isinstance(key, tuple) else (key,)), *([] if _has_ellipsis(key) else [...]))
    return viewed(base, result, lambda array: array[key], show_layout=lambda layout: layout[own], key=key)


def is_itself(array: Any, key: Any, value: Any) -> bool:
    """True if what is stored is what `array[key]` shows: what Python stores at the end of `array[key] += …`."""
    memory = getattr(value, "memory", None)
    return isinstance(memory, View) and memory.base is array and memory.key is key
