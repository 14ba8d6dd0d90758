"""Keys of `x[key]`: what Python and NumPy let one write, in the forms that primitives take."""

import operator
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue, current
from pullback.errors import TracingError
from pullback.numpy_api.creation import array as stacked
from pullback.numpy_api.operands import concrete
from pullback.rules.gathering import ARRAY, gather
from pullback.rules.indexing import index


def read(x: Any, key: Any) -> Any:
    """Elements of x: a view where the key is of numbers and slices, else read by positions."""
    given = [_array_or_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    if any(isinstance(part, np.bool_) for part in given):
        x, given = _with_axes_of_truths(x, given)
    parts, positions = _parts(given, x)
    if not positions:
        return index(x, key=parts[0] if len(parts) == 1 else tuple(parts))
    found = gather(x, *positions, key=tuple(parts))
    before = _axes_before(given, parts, x)
    if before:
        axes = max(np.ndim(position) for position in positions)
        found = np.moveaxis(found, range(before, before + axes), range(axes))
    return found


def parts_of(x: Any, key: Any) -> tuple[list[Any], list[Any]]:
    """A key that is stored by: its parts, with ARRAY in place of each array of positions, and the arrays."""
    given = [_array_or_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    if any(isinstance(part, np.bool_) for part in given):
        raise TracingError("a store by a key with a single truth value in it is not traced; choose with numpy.where")
    parts, positions = _parts(given, x)
    if _axes_before(given, parts, x):
        raise TracingError(
            "a store by a key with '...' of no axes between two arrays is not traced, since NumPy puts their axes first;"
            " leave '...' out and transpose the stored array"
        )
    return parts, positions


def _axes_before(given: list[Any], parts: list[Any], x: Any) -> int:
    """Axes of the result before those of arrays that only an ellipsis of no axes separates, which NumPy puts first; else 0."""
    place = next((number for number, part in enumerate(given) if part is Ellipsis), None)
    if place is None or ARRAY not in parts or sum(_axes_of(part) for part in given) < np.ndim(x):
        return 0
    split = sum(len(part) if isinstance(part, tuple) else 1 for part in given[:place])
    chosen = [number for number, part in enumerate(parts) if part is ARRAY or isinstance(part, int)]
    if not chosen[0] < split <= chosen[-1] or len(chosen) <= chosen[-1] - chosen[0]:  # apart already: they are first
        return 0
    return chosen[0]


def _with_axes_of_truths(x: Any, given: list[Any]) -> tuple[Any, list[Any]]:
    """A single truth value reads a new axis of length one: all of it, or nothing."""
    taken = sum(_axes_of(part) for part in given)
    rank, place = np.ndim(x), 0
    parts: list[Any] = []
    for part in given:
        if isinstance(part, np.bool_):
            x = index(x, key=(*[slice(None)] * place, None))
            parts.append((np.arange(int(part)),))
            place += 1
        else:
            parts.append(part)
            place += rank - taken if part is Ellipsis else _axes_of(part)
    return x, parts


def _parts(given: list[Any], x: Any) -> tuple[list[Any], list[Any]]:
    """The key with the ellipsis written out and ARRAY for each array, and the arrays."""
    taken = sum(_axes_of(part) for part in given)
    if taken > np.ndim(x):
        raise IndexError(f"too many indices: {taken} for an array of {np.ndim(x)} dimensions")
    if sum(part is Ellipsis for part in given) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    parts: list[Any] = []
    positions: list[Any] = []
    for part in given:
        if part is Ellipsis:
            parts.extend([slice(None)] * (np.ndim(x) - taken))
        elif isinstance(part, tuple):  # a mask, as the positions of what it keeps
            parts.extend([ARRAY] * len(part))
            positions.extend(part)
        elif isinstance(part, np.ndarray | TracedValue):
            parts.append(ARRAY)
            positions.append(part)
        else:
            parts.append(part)
    return parts, positions


def _axes_of(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, np.bool_):
        return 0
    return len(part) if isinstance(part, tuple) else 1


def _array_or_part(part: Any) -> Any:
    """A number, slice, None or Ellipsis as it is; an array of positions; a tuple of them for a mask; a truth value."""
    part = current(part)
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, slice):
        return slice(*(end if end is None else operator.index(end) for end in (part.start, part.stop, part.step)))
    if issubclass(type(part), int | np.integer) and not issubclass(type(part), bool):
        return int(part)
    if isinstance(part, list) and any(isinstance(one, TracedValue) for one in part):
        part = stacked(part)
    if isinstance(part, TracedValue):
        array: Any = part
    else:
        array = np.asarray(part)
        array = array.astype(np.intp) if array.size == 0 and isinstance(part, list) else array
    kind = array.dtype.kind
    if kind in "iu":
        return array
    if kind == "b":
        mask = concrete(array, "indexing by a mask")
        return tuple(np.nonzero(mask)) if np.ndim(mask) else np.bool_(mask)
    what = "a traced value of dtype" if isinstance(part, TracedValue) else f"a {type(part).__name__} of dtype"
    raise TracingError(f"an array cannot be indexed by {what} {array.dtype}; index by integers, slices or masks")
