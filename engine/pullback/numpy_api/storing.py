"""Stores by a key, `x[key] = value`, as functions that give the array after the store."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.core.types import Shape
from pullback.numpy_api.creation import array
from pullback.numpy_api.keys import parts_of
from pullback.numpy_api.masked_reads import MaskedRead, as_mask, over
from pullback.numpy_api.operands import as_operand
from pullback.numpy_api.shapes import astype, broadcast_to, reshape
from pullback.rules import elementwise
from pullback.rules.storing import add_at, selected_shape, set_at


def updated(x: Any, key: Any, value: Any) -> Any:
    """The array after `x[key] = value`; `x` itself stays as it is.

    The key may be anything that NumPy takes: numbers, slices, masks, arrays of positions. Where positions repeat, the last value
    stays. The value is broadcast, and cast to the dtype of `x`, as in NumPy.

    >>> pb.numpy.updated(np.zeros(4), slice(1, 3), 5.0)
    array([0., 5., 5., 0.])
    >>> pb.grad(lambda x: np.sum(pb.numpy.updated(x, 0, x[1]) ** 2))(np.array([1.0, 2.0, 3.0]))
    array([0., 8., 6.])
    """
    x, key = as_operand(x), as_mask(key)
    mask, before = _mask_alone(key)
    if type(value) is MaskedRead:
        return value.stored_into(x, None if before else mask)
    value = in_dtype(value, x.dtype, "unsafe")
    if mask is not None and _is_for_all(value, mask, x, before):
        return elementwise.where(over(mask, x, before), value, x)
    parts, positions, selected = _selection(x, key)
    value = fitting(value, selected)
    if not positions and selected == np.shape(x) and all(part == slice(None) for part in parts):
        return (
            np.array(broadcast_to(value, selected))
            if not isinstance(value, TracedValue)
            else broadcast_to(value, selected)
        )
    if 0 in selected:
        return x
    return set_at(x, value, *positions, key=parts, unique=mask is not None or _are_distinct(positions, x, parts))


def added(x: Any, key: Any, value: Any) -> Any:
    """The array after `numpy.add.at(x, key, value)`; `x` itself stays as it is.

    Unlike after `x[key] += value`, an element that the key selects several times has been added to as often.

    >>> pb.numpy.added(np.zeros(3), [0, 2, 0], 1.0)
    array([2., 0., 1.])
    """
    x, key = as_operand(x), as_mask(key)
    value = in_dtype(value, x.dtype, "same_kind")
    mask, before = _mask_alone(key)
    if mask is not None and _is_for_all(value, mask, x, before):
        return elementwise.where(over(mask, x, before), x + value, x)
    parts, positions, selected = _selection(x, key)
    value = fitting(value, selected)
    return x if 0 in selected else add_at(x, value, *positions, key=parts)


def _selection(x: Any, key: Any) -> tuple[tuple[Any, ...], list[Any], Shape]:
    """The key as stores take it, its arrays of positions, and the shape of what it selects."""
    parts, positions = parts_of(x, key)
    selected = selected_shape(np.shape(x), [np.shape(one) for one in positions], tuple(parts))
    return tuple(parts), positions, selected


def in_dtype(value: Any, dtype: np.dtype[Any], casting: Any) -> Any:
    """The value in the dtype of the array it is stored in; NumPy's error where the casting does not allow it."""
    if isinstance(value, list | tuple):
        value = array(value)
    if not isinstance(value, TracedValue | np.ndarray | np.generic):
        value = np.asarray(value, dtype if casting == "unsafe" else None)[()]
    if not np.can_cast(value.dtype, dtype, casting):
        raise TypeError(f"cannot cast what is added from {value.dtype} to {dtype} with casting rule {casting!r}")
    if value.dtype.kind == "c" and dtype.kind != "c":
        value = value.real
    return value if value.dtype == dtype else astype(value, dtype)


def fitting(value: Any, selected: Shape) -> Any:
    """The value without axes of length one in front that what is selected does not have; NumPy's error where it does not fit."""
    shape = np.shape(value)
    behind = len(shape) - len(selected)
    own = shape[max(behind, 0) :]
    fits = all(length == 1 for length in shape[: max(behind, 0)]) and all(
        length in (1, wanted) for length, wanted in zip(own[::-1], selected[::-1], strict=False)
    )
    if not fits:
        raise ValueError(f"could not broadcast input array from shape {shape} into shape {selected}")
    return reshape(value, own) if behind > 0 else value


# --- masks -----------------------------------------------------------------------------------------------------------
def _mask_alone(key: Any) -> tuple[Any, int]:
    """The mask of a key that is one mask beside whole axes, or None; and the number of axes before it."""
    parts = list(key) if isinstance(key, tuple) and key else [key]
    before = next((place for place, part in enumerate(parts) if not _is_whole(part)), 0)
    first: Any
    first, *rest = parts[before:]
    if not all(part is Ellipsis or _is_whole(part) for part in rest):
        return None, before
    if isinstance(first, list) and not any(isinstance(one, TracedValue) for one in first):
        first = np.asarray(first)
    if isinstance(first, bool):
        return np.bool_(first), before
    dtype = getattr(first, "dtype", None)
    return (first if dtype is not None and dtype.kind == "b" else None), before


def _is_whole(part: Any) -> bool:
    return isinstance(part, slice) and part == slice(None)


def _is_for_all(value: Any, mask: Any, x: Any, before: int) -> bool:
    """True if each selected element gets what is there for its place, however many are selected."""
    covered = before + np.ndim(mask)
    if np.shape(mask) != np.shape(x)[before:covered]:
        return False  # NumPy's error is raised when the mask is read
    return np.ndim(value) <= np.ndim(x) - covered


# --- positions -------------------------------------------------------------------------------------------------------
def _are_distinct(positions: Sequence[Any], x: Any, parts: Sequence[Any]) -> bool:
    """True if it is known that arrays of positions name no element twice."""
    if not positions:
        return True
    together = np.broadcast_shapes(*(np.shape(one) for one in positions))
    if np.prod(together, dtype=np.intp) <= 1:
        return True
    if any(isinstance(one, TracedValue) for one in positions):
        return False
    lengths = iter(np.shape(x))
    sizes = [
        length
        for part, length in ((part, next(lengths)) for part in parts if part is not None)
        if isinstance(part, str)
    ]
    rows = np.stack([np.broadcast_to(one % size, together).ravel() for one, size in zip(positions, sizes, strict=True)])
    count: int = rows.shape[1]
    return len(np.unique(rows, axis=1)[0]) == count
