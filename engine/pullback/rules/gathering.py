"""Reading elements by arrays of positions, and the transposes, which add up what was read more than once.

A key is written with the word ARRAY in place of each array of positions; the arrays themselves are operands. So the key
is a constant of a graph and the positions may be computed.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal, whole
from pullback.core.constant_arrays import number
from pullback.core.kinds import all_batched, behind_batch
from pullback.core.scattered_cotangent import ScatteredCotangent
from pullback.core.selection import Selection
from pullback.core.types import ArrayType, Shape

ARRAY = "array"


def filled(key: Any, positions: Sequence[Any]) -> tuple[Any, ...]:
    """The key with its arrays of positions."""
    arrays = iter(positions)
    return tuple(next(arrays) if isinstance(part, str) else part for part in key)


def _gathered_type(type_: ArrayType, *positions: ArrayType, key: Any) -> ArrayType:
    shape = _selected_shape(type_.shape, [position.shape for position in positions], key) if type_.size else None
    if shape is not None:
        return ArrayType(shape, type_.dtype)
    probe = np.broadcast_to(np.zeros((), type_.dtype), type_.shape)
    zeros = [np.zeros(position.shape, np.int64) for position in positions]
    return ArrayType(probe[filled(key, zeros)].shape, type_.dtype)


def _selected_shape(shape: Shape, positions: Sequence[Shape], key: Any) -> Shape | None:
    """The shape by a key of arrays and slices, for which NumPy would read all elements; None for others, and what NumPy refuses."""
    if len(key) > len(shape) or not all(isinstance(part, str | slice) for part in key):
        return None
    try:
        together = np.broadcast_shapes(*positions)
    except ValueError:
        return None
    sizes = zip([*key, *[slice(None)] * (len(shape) - len(key))], shape, strict=True)
    kept = [len(range(*part.indices(size))) for part, size in sizes if isinstance(part, slice)]
    begin = places_of(key)[0] if are_adjacent(places_of(key)) else 0
    return (*kept[:begin], *together, *kept[begin:])


def _scatter_add(v: Any, *positions: Any, key: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
    x = np.zeros(shape, dtype)
    np.add.at(x, filled(key, positions), v)
    return x


def places_of(key: Any) -> list[int]:
    """Positions in a key of its arrays and numbers, which NumPy takes together."""
    return [place for place, part in enumerate(key) if isinstance(part, str | int)]


def are_adjacent(places: Sequence[int]) -> bool:
    """True if arrays and numbers of a key follow each other: what they select has its axes in their place then."""
    return places[-1] - places[0] == len(places) - 1


def aligned(positions: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Arrays of positions that broadcast against each other example by example."""
    rank = max(np.ndim(array) - own for array, own in zip(positions, batched, strict=True))
    return [behind_batch(array, rank) if own else array for array, own in zip(positions, batched, strict=True)]


def _gather_batch(operands: Sequence[Any], batched: Sequence[bool], key: Any) -> Any:
    (x, *positions), (of_x, *of_positions) = operands, batched
    places = places_of(key)
    if not any(of_positions):
        # Where NumPy puts the axes of the arrays in front, the axis of the batch comes behind them.
        rank = 0 if are_adjacent(places) else len(np.broadcast_shapes(*(np.shape(array) for array in positions)))
        read = gather(x, *positions, key=(slice(None), *key))
        return np.moveaxis(read, rank, 0) if rank else read
    if places[0] or not are_adjacent(places):
        return None
    positions = aligned(positions, of_positions)
    if not of_x:
        return gather(x, *positions, key=key)
    rank = max(np.ndim(array) for array in positions)
    examples = np.arange(np.shape(x)[0]).reshape(-1, *[1] * (rank - 1))
    return gather(x, examples, *positions, key=(ARRAY, *key))


def _scatter_add_batch(
    operands: Sequence[Any], batched: Sequence[bool], key: Any, shape: Shape, dtype: np.dtype[Any]
) -> Any:
    v, *positions = operands
    if any(batched[1:]) or not are_adjacent(places_of(key)):
        return None
    return scatter_add(v, *positions, key=(slice(None), *key), shape=(np.shape(v)[0], *shape), dtype=dtype)


# --- written into memory of a plan ----------------------------------------------------------------------------------

_POSITION = np.dtype(np.intp)


def _is_taken(type_: ArrayType, key: Any, count: int) -> bool:
    """True if a key is arrays next to each other among whole axes, which is what `np.take` reads without a copy."""
    places = [place for place, part in enumerate(key) if isinstance(part, str)]
    others = [part for part in key if not isinstance(part, str)]
    return len(places) == count and are_adjacent(places) and all(_is_whole(part) for part in others)


def _is_whole(part: Any) -> bool:
    return isinstance(part, slice) and part == slice(None)


def _flat_scratch(*positions: ArrayType) -> tuple[ArrayType, ...]:
    """The positions on one axis, those of one array meanwhile, and the lowest and highest of them."""
    all_of_them = ArrayType(np.broadcast_shapes(*(array.shape for array in positions)), _POSITION)
    return (
        all_of_them,
        *(ArrayType(array.shape, _POSITION) for array in positions[1:]),
        *[ArrayType((), _POSITION)] * 2,
    )


def _check_bounds(positions: Any, axis: int, size: int, low: Any, high: Any) -> None:
    """Raise IndexError for a position out of bounds, as NumPy does where it makes the result itself."""
    if positions.size:
        np.minimum.reduce(positions, axis=None, out=low)
        np.maximum.reduce(positions, axis=None, out=high)
        for bad in (low.item(), high.item()):
            if not -size <= bad < size:
                raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {size}")


def _gather_into(out: Any, x: Any, *positions: Any, key: Any, scratch: Sequence[Any] = ()) -> None:
    if not scratch:
        np.copyto(out, x[filled(key, positions)])
        return
    first = key.index(ARRAY)
    sizes = x.shape[first : first + len(positions)]
    flat, *others, low, high = scratch
    np.copyto(flat, positions[0])
    _check_bounds(flat, first, sizes[0], low, high)
    for offset, (array, other) in enumerate(zip(positions[1:], others, strict=True), start=1):
        size = number(sizes[offset], _POSITION)
        np.copyto(other, array)
        _check_bounds(other, first + offset, sizes[offset], low, high)
        np.remainder(other, size, out=other)  # counted from the end where below zero
        np.multiply(flat, size, out=flat)
        np.add(flat, other, out=flat)
    whole = x.reshape(*x.shape[:first], prod(sizes), *x.shape[first + len(positions) :])
    np.take(whole, flat, axis=first, out=out, mode="wrap")


def _gather_scratch(type_: ArrayType, *positions: ArrayType, key: Any) -> tuple[ArrayType, ...]:
    return _flat_scratch(*positions) if _is_taken(type_, key, len(positions)) else ()


def _scatter_add_into(out: Any, v: Any, *positions: Any, key: Any, shape: Shape, dtype: Any, scratch: Any = ()) -> None:
    out.fill(0)
    cast = iter(scratch)
    own = [  # a Python number is a position as it is
        array if getattr(array, "dtype", _POSITION) == _POSITION else _copied(next(cast), array) for array in positions
    ]
    np.add.at(out, filled(key, own), v)


def _copied(out: Any, x: Any) -> Any:
    np.copyto(out, x)
    return out


def _gathered(x: Any, *positions: Any, key: Any) -> Any:
    found = x[filled(key, positions)]
    return (
        found if any(map(np.ndim, positions)) or not np.ndim(found) else found.copy()
    )  # of numbers NumPy makes a view


class _Gather(Selection):
    def makes_arrays(self, *types: ArrayType, **params: Any) -> bool:
        return not _is_taken(types[0], params["key"], len(types) - 1)


gather: Selection = _Gather(
    "gather",
    _gathered,
    _gathered_type,
    lambda v, x, *positions, key: ScatteredCotangent(v, key, np.shape(x), x.dtype, positions),
    _gather_batch,
    into=_gather_into,
    scratch=_gather_scratch,
)
scatter_add: Selection = Selection(
    "scatter_add",
    _scatter_add,
    lambda type_, *positions, key, shape, dtype: ArrayType(shape, dtype),
    lambda v, x, *positions, key, shape, dtype: gather(v, *positions, key=key),
    _scatter_add_batch,
    into=_scatter_add_into,
    scratch=lambda type_, *positions, **_: [
        ArrayType(array.shape, _POSITION) for array in positions if array.dtype != _POSITION
    ],
)


def _along(positions: Any, axis: int) -> tuple[Any, ...]:
    """The key that reads `positions` along one axis and each other axis in step."""
    grids: list[Any] = list(np.ogrid[tuple(slice(length) for length in positions.shape)])
    grids[axis] = positions
    return tuple(grids)


def _put_along(v: Any, positions: Any, axis: int, shape: Shape, dtype: np.dtype[Any]) -> Any:
    x = np.zeros(shape, dtype)
    np.add.at(x, _along(positions, axis), v)
    return x


def _put_along_batch(
    operands: Sequence[Any], batched: Sequence[bool], axis: int, shape: Shape, dtype: np.dtype[Any]
) -> Any:
    v, positions = all_batched(operands, batched)
    return put_along(v, positions, axis=axis + 1, shape=(np.shape(v)[0], *shape), dtype=dtype)


@lru_cache(maxsize=512)
def _steps(size: int, step: int, axes_behind: int) -> Any:
    """Offsets of the elements along one axis in a flattened array."""
    return (np.arange(size) * step).reshape(-1, *[1] * axes_behind)


def _in_line(positions: Any, axis: int, x: Any, scratch: Sequence[Any]) -> Any:
    """Offsets in the memory of x of the elements that positions along an axis select."""
    line, low, high = scratch
    np.copyto(line, positions)
    _check_bounds(line, axis, x.shape[axis], low, high)
    np.remainder(line, number(x.shape[axis], _POSITION), out=line)
    steps = [stride // x.itemsize for stride in x.strides]
    np.multiply(line, number(steps[axis], _POSITION), out=line)
    for place, (size, step) in enumerate(zip(x.shape, steps, strict=True)):
        if place != axis:
            np.add(line, _steps(size, step, x.ndim - 1 - place), out=line)
    return line


def _take_along_into(out: Any, x: Any, positions: Any, axis: int, scratch: Sequence[Any]) -> None:
    if positions.size:
        x = np.ascontiguousarray(x)
        np.take(x.reshape(-1), _in_line(positions, axis, x, scratch), out=out, mode="wrap")


def _put_along_into(
    out: Any, v: Any, positions: Any, axis: int, shape: Shape, dtype: Any, scratch: Sequence[Any]
) -> None:
    target = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)  # of another order a line is a copy
    target.fill(0)
    if positions.size:
        np.add.at(target.reshape(-1), (_in_line(positions, axis, target, scratch),), v)
    if target is not out:
        out[...] = target


take_along: Selection = Selection(
    "take_along",
    np.take_along_axis,
    lambda type_, positions, axis: ArrayType(positions.shape, type_.dtype),
    lambda v, x, positions, axis: put_along(v, positions, axis=axis, shape=np.shape(x), dtype=x.dtype),
    lambda operands, batched, axis: take_along(*all_batched(operands, batched), axis=axis + 1),
    into=_take_along_into,
    scratch=lambda type_, positions, **_: _flat_scratch(positions),
)
put_along: Selection = Selection(
    "put_along",
    _put_along,
    lambda type_, positions, axis, shape, dtype: ArrayType(shape, dtype),
    lambda v, x, positions, axis, shape, dtype: take_along(v, positions, axis=axis),
    _put_along_batch,
    into=_put_along_into,
    scratch=lambda type_, positions, **_: _flat_scratch(positions),
)

gather.in_lines = take_along.in_lines = (0,)

cases(gather, normal(5), whole(5, 4), key=(ARRAY,), because="one element may be read many times")
cases(gather, normal(3, 4, 2), whole(3, 6), whole(2, 6), key=(ARRAY, slice(None), ARRAY))
cases(gather, normal(3, 4), whole(4, 2, 3), key=(slice(None), ARRAY), because="an array of positions of any shape")
cases(gather, normal(3, 4, 5), whole(3, 2), key=(ARRAY, slice(1, 3), -1), because="numbers beside arrays")
cases(scatter_add, normal(4), whole(3, 4), key=(ARRAY,), shape=(3,), dtype=np.dtype(np.float64))
cases(take_along, normal(3, 4), whole(4, 3, 6), axis=1)
cases(put_along, normal(3, 6), whole(4, 3, 6), axis=1, shape=(3, 4), dtype=np.dtype(np.float64))
