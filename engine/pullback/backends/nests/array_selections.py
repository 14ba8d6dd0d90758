"""Selections by positions that are computed: where the elements lie that a read or a store by arrays of positions means.

Where an element of the array is, is a sum: what its place among the selected elements says by itself, and a position that
is read, times a stride.

    x[:, p, 2]   place (i, k)   ->   i * stride 0 + p[k] * stride 1 + 2 * stride 2
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pullback.core.primitive import Primitive
from pullback.core.types import Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Node
from pullback.rules.gathering import ARRAY, gather, put_along, scatter_add, take_along

#: Rules that read elements by positions.
PICKS: frozenset[Primitive] = frozenset({gather, take_along})


class PositionArray(Protocol):
    """An array of positions, with its strides in elements."""

    @property
    def shape(self) -> Shape:
        """Its shape."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one to the next along each axis."""


@dataclass(frozen=True, slots=True)
class Pick:
    """Positions along one axis of the array."""

    operand: int
    size: int
    axis: int
    strides: tuple[int, ...]
    """Strides of the positions along the axes of the space."""


@dataclass(frozen=True, slots=True)
class ArraySelection:
    """A selection from an array: one element for each place of a space."""

    space: Shape
    places: tuple[tuple[int, int, int, int], ...]
    """The axis of the space, that of the array, and the start and step along it."""
    starts: tuple[tuple[int, int], ...]
    """Axes of the array with the one number that is taken there."""
    picks: tuple[Pick, ...]

    def offset(self, strides: Sequence[int]) -> int:
        """Offset of the first element, without the positions that are picked."""
        starts = sum(start * strides[axis] for axis, start in self.starts)
        return starts + sum(start * strides[axis] for _, axis, start, _ in self.places)

    def steps(self, strides: Sequence[int]) -> tuple[int, ...]:
        """Strides along the axes of the space, without the positions that are picked."""
        steps = [0] * len(self.space)
        for place, axis, _, step in self.places:
            steps[place] = step * strides[axis]
        return tuple(steps)


def picked_by_key(shape: Shape, key: Sequence[Any], positions: Sequence[PositionArray]) -> ArraySelection:
    """The selection by a key of arrays, numbers, slices and new axes, the arrays given apart."""
    advanced = [place for place, part in enumerate(key) if isinstance(part, str | int)]
    together = np.broadcast_shapes(*(array.shape for array in positions))
    adjacent = advanced[-1] - advanced[0] == len(advanced) - 1
    space: list[int] = [] if adjacent else list(together)
    begin = 0  # of the axes that the positions have together
    places, starts, picked = [], [], []
    axis = operand = 0
    for place, part in enumerate([*key, *[slice(None)] * (len(shape) - sum(part is not None for part in key))]):
        if adjacent and place == advanced[0]:
            begin = len(space)
            space.extend(together)
        if part is None:
            space.append(1)
            continue
        if isinstance(part, slice):
            start, stop, step = part.indices(shape[axis])
            places.append((len(space), axis, start, step))
            space.append(len(range(start, stop, step)))
        elif isinstance(part, str):
            picked.append((operand, axis))
            operand += 1
        else:
            starts.append((axis, part + shape[axis] * (part < 0)))
        axis += 1
    rank, picks = len(space), []
    for operand, axis in picked:
        array = positions[operand]
        own = [0 if size == 1 else stride for size, stride in zip(array.shape, array.strides, strict=True)]
        behind = rank - begin - len(together)
        strides = (*[0] * (rank - behind - len(own)), *own, *[0] * behind)
        picks.append(Pick(operand, shape[axis], axis, strides))
    return ArraySelection(tuple(space), tuple(places), tuple(starts), tuple(picks))


def picked_along(shape: Shape, axis: int, positions: PositionArray) -> ArraySelection:
    """The selection by positions along one axis, in step along the others."""
    places = tuple((other, other, 0, 1) for other in range(len(shape)) if other != axis)
    return ArraySelection(positions.shape, places, (), (Pick(0, shape[axis], axis, positions.strides),))


def picked_by(node: Node, shape: Shape, positions: Sequence[PositionArray]) -> ArraySelection:
    """The selection of a node, from an array of this shape."""
    params = dict(node.params)
    if "axis" in params:
        return picked_along(shape, params["axis"], positions[0])
    return picked_by_key(shape, params["key"], positions)


def why_not_picked(node: Node) -> str | None:
    """The reason why a read or a sum by positions is no such selection; None if it is one."""
    name, params = node.primitive.name, dict(node.params)
    if any(atom.type.dtype.kind != "i" for atom in node.inputs[1:]):
        return f"{name} by positions that are no integers"
    if node.primitive in (scatter_add, put_along):
        shape = params["shape"]
        if node.inputs[0].type.dtype != node.outputs[0].type.dtype or node.outputs[0].type.dtype.kind == "b":
            return f"{name} of {node.inputs[0].type.dtype} to {node.outputs[0].type.dtype}"
    else:
        shape = node.inputs[0].type.shape
    if "axis" in params:
        axis, positions = params["axis"], node.inputs[1].type.shape
        others = len(shape) == len(positions) and shape[:axis] + shape[axis + 1 :] == (
            positions[:axis] + positions[axis + 1 :]
        )
        return None if others else f"{name} of {shape} by positions of {positions}"
    return None if all(map(_is_plain, params["key"])) else f"{name} by an ellipsis or truth values"


def _is_plain(part: Any) -> bool:
    if isinstance(part, str):
        return part == ARRAY
    return part is None or isinstance(part, slice) or (isinstance(part, int) and not isinstance(part, bool))
