"""pack: separate arrays as one, without a copy where they lie in one block already."""

from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.errors import NeedsValueError
from pullback.numpy_api.concrete_tracer import ConcreteTracer
from pullback.rules import packing


def pack(*views: Any, copy: bool | None = None) -> Any:
    """All elements of the arrays, one array after the other, as one array of one dimension.

    Where the arrays are views that fill their parent in order, the result is that memory, and of a whole block the very
    `block.array`: no copy. Otherwise it is a new array: views that overlap, repeat, leave gaps or come in another order,
    and arrays of different dtypes. `pb.debug.counting()` tells the cases apart as `tiles` and `concatenate`, and with
    `copy=False` a copy is an error that says so. In a compiled function memory is not known beforehand, and pack copies.

    >>> block = pb.Block({"w": (2, 2), "b": (2,)})
    >>> pb.pack(block.w, block.b) is block.array
    True
    """
    if not views:
        raise ValueError("pack needs at least one array")
    arrays = [view if isinstance(view, TracedValue) else np.asarray(view) for view in views]
    if copy is not True and packing.tiling([_concrete(array) for array in arrays]) is not None:
        return packing.tiles(*arrays)
    if copy is False:
        if not all(issubclass(type(_concrete(array)), np.ndarray) for array in arrays):
            raise NeedsValueError("pack(…, copy=False) has to see memory, which a compiled function does not")
        raise ValueError("pack: the arrays do not fill one parent in order, so they must be copied; allow copy=None")
    return packing.joined(arrays)


def _concrete(view: Any) -> Any:
    """The array that a traced value stands for, if it has that one at hand."""
    value = view
    while isinstance(value, ConcreteTracer):
        value = value.value
    return value if np.shape(value) == np.shape(view) else None
