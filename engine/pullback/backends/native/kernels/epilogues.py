"""What is done to the numbers of a product as soon as they are there, while they are in the nearest cache."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pullback.backends.native.writing.function import Index
from pullback.backends.native.writing.lanes import Lanes


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a result the lanes of a value belong: the indices of the first, and the axis along which the others follow."""

    indices: tuple[Index, ...]
    """Of the batch, the row and the column."""
    axis: int
    active: int | None
    """How many lanes count; None for all."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What is done to each value of a product after it is stored.

    `write(pointers, lanes, value, place)` gives the value that takes its place, or None where it has stored what is wanted.
    The pointers are those given to `emit_product` behind A, B and C. The key says all that the text depends on.
    """

    key: Hashable
    write: Callable[[Sequence[str], Lanes, str, Place], str | None]


@dataclass(frozen=True, slots=True)
class Extent:
    """A part of an axis of the result: its first index, how many there are, and how far apart they lie."""

    start: Index
    count: int
    stride: int


def finish(epilogue: Epilogue, lanes: Lanes, c: str, pointers: Sequence[str], extents: Sequence[Extent]) -> None:
    """Loops over a part of the result, with vectors of at most so many lanes along the axis that is contiguous."""
    function = lanes.function
    along = _vector_axis(extents)
    count, stride = extents[along].count, extents[along].stride
    width = min(lanes.width, 1 << (count - 1).bit_length())
    lanes = Lanes(function, lanes.dtype, width)
    with ExitStack() as loops:
        indices: list[Index] = []
        for axis, extent in enumerate(extents):
            turn = 0 if axis == along else loops.enter_context(function.loop(0, extent.count))
            indices.append(function.add(extent.start, turn))
        line = function.offset(*((index, extent.stride) for index, extent in zip(indices, extents, strict=True)))
        pointer = function.element(c, line, lanes.element)

        def piece(first: Index, active: int | None) -> None:
            here = (*indices[:along], function.add(indices[along], first), *indices[along + 1 :])
            offset = function.mul(first, stride)
            value = lanes.load(pointer, offset, stride=stride, active=active)
            finished = epilogue.write(pointers, lanes, value, Place(here, along, active))
            if finished is not None:
                lanes.store(finished, pointer, offset, stride=stride, active=active)

        whole = count // width * width
        if whole:
            with function.loop(0, whole, width) as first:
                piece(first, None)
        if whole < count:
            piece(whole, count - whole)


def _vector_axis(extents: Sequence[Extent]) -> int:
    """The longest of the axes that are contiguous, else the last."""
    contiguous = [axis for axis, extent in enumerate(extents) if extent.stride == 1]
    return max(contiguous, key=lambda axis: extents[axis].count, default=len(extents) - 1)
