"""Memory of traced arrays, as NumPy has it: an array of its own or a view of another, and the order it lies in.

Where the places of a view are is found by making the view of an array without memory that lies as the base does, as NumPy would.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue, current, innermost_trace
from pullback.core.types import Shape
from pullback.numpy_api.call_sites import located


class Contents:
    """The current contents of an array, the number of stores into it, and the trace it was made under.

    `order` is the memory layout that NumPy's function was given, "C" or "F"; None where it follows from the operands.
    """

    __slots__ = ("born", "order", "value", "version")

    def __init__(self, value: Any, born: Any, version: int = 0, order: str | None = None) -> None:
        self.value = value
        self.born = born
        self.version = version
        self.order = order

    def read(self, array: Any) -> Any:
        """The value."""
        del array
        return self.value


class View:
    """The origin of a view: the array whose memory it shows, and how the view is made of it.

    `show` makes it of a traced array; `show_layout`, where NumPy's function might make a copy, of an array without memory, or
    raises ValueError where it would.
    """

    __slots__ = ("base", "key", "show", "show_layout", "value", "version")

    def __init__(
        self,
        base: Any,
        show: Callable[[Any], Any],
        value: Any,
        show_layout: Callable[[Any], Any] | None = None,
        key: Any = None,
    ) -> None:
        self.base = base
        self.show = show
        self.show_layout = show_layout or show
        self.key = key
        self.version = version_of(base)
        self.value = value  # None where it is the array's own

    def read(self, array: Any) -> Any:
        """The value: as it was made, or made again after a store."""
        version = version_of(self.base)
        if version != self.version and layout_of(array)[0] is not array:  # else NumPy made a copy
            self.value = single(self.show(self.base.current()))
            self.version = version
        return array if self.value is None else self.value


def version_of(array: Any) -> int:
    """The number of times that an array has been stored into, by whatever name."""
    while isinstance(array.memory, View):
        array = array.memory.base
    return array.memory.version if isinstance(array.memory, Contents) else 0


def single(value: Any) -> Any:
    """A value under a name of its own, which later stores into others do not change."""
    if not isinstance(value, TracedValue):
        return value
    now = value.current()
    return now.alias() if isinstance(now, TracedValue) else now


def layout_of(array: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """The array whose memory this one shows, and how it lies there: an array of single bytes that is never read."""
    memory = array.memory
    if isinstance(memory, View):
        root, layout = layout_of(memory.base)
        try:
            return root, memory.show_layout(layout)
        except ValueError:  # NumPy makes a copy
            pass
    return array, _without_memory(np.shape(array))


def require_c_order(array: Any) -> None:
    """Refuse to tell whether a reshape is a view of an array that NumPy may lay out otherwise than in C order."""
    while isinstance(array.memory, View):
        array = array.memory.base
    if not _owns_c_order(array):
        raise located(
            "a store beside a reshape of an array that is not in C order: whether NumPy copies there depends on how it lies; "
            "reshape after the store, or make a copy in C order first: y = y.copy()"
        )


def _owns_c_order(array: Any) -> bool:
    """An array with memory of its own is in C order, as far as is known."""
    order = array.memory.order if isinstance(array.memory, Contents) else None
    return order == "C" or (order is None and not _may_be_transposed(array.current())) or not _is_wide(np.shape(array))


def in_c_order(array: Any) -> bool:
    """NumPy's array after this model, in its order ("K"), is in C order."""
    if not isinstance(array, TracedValue):
        strides, shape = np.asarray(array).strides, np.shape(array)
    else:
        root, layout = layout_of(array)
        if not _owns_c_order(root):
            return False
        strides, shape = layout.strides, layout.shape
    steps = [abs(stride) for stride, size in zip(strides, shape, strict=True) if size > 1]
    return steps == sorted(steps, reverse=True)


def copied(array: Any, order: str) -> Any:
    """`array.copy(order)`: another name for the value, which lies as NumPy's copy would."""
    if isinstance(array, TracedValue) and order in ("C", "F"):
        born = innermost_trace() if array.on_device else array.traced_by
        array.memory = Contents(single(array), born, order=order)
    return array


def _is_wide(shape: Shape) -> bool:
    """More than one axis is longer than one, so that C order and other orders differ."""
    return sum(size > 1 for size in shape) > 1


def _may_be_transposed(value: Any) -> bool:
    """True if NumPy's array of this value may not be in C order, because a transpose went into it."""
    while isinstance(value, TracedValue) and hasattr(value, "value"):
        value = current(value.value)
    if isinstance(value, TracedValue):
        return value.may_be_transposed()
    return type(value) is np.ndarray and not value.flags.c_contiguous


def _without_memory(shape: Shape) -> np.ndarray[Any, Any]:
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return np.lib.stride_tricks.as_strided(np.empty(1, np.uint8), shape, strides)
