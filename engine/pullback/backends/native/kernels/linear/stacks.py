"""Stacks of matrices in lanes: each lane has one place of a stack, or all have the same.

stack [1000, 3] of a[1000, 1, 3, 3] and b[3, 3, 2]: eight of the 1000 at a time, one of the 3 after the other
"""

from collections.abc import Callable, Sequence

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.emission import StoredArray
from pullback.core.types import Shape
from pullback.dataclass import dataclass


def strides_over(stored: StoredArray, stack: Shape, own: int) -> tuple[int, ...]:
    """Strides of an array along a stack that it is broadcast over; its last `own` axes are the matrix's."""
    rank = len(stored.shape) - own
    strides = [0 if size == 1 else stride for size, stride in zip(stored.shape[:rank], stored.strides, strict=False)]
    return (0,) * (len(stack) - rank) + tuple(strides)


@dataclass(frozen=True, slots=True)
class Place:
    """The array of one group of lanes: where it begins, how its elements lie, and how far lanes are apart."""

    function: Function
    pointer: str
    strides: tuple[int, ...]
    apart: int
    active: int | None

    def load(self, lanes: Lanes, *place: Index) -> str:
        """An element in every lane."""
        return lanes.load(self.pointer, self.offset(*place), stride=self.apart, active=self.active)

    def store(self, lanes: Lanes, value: str, *place: Index) -> None:
        """Write an element of every lane."""
        lanes.store(value, self.pointer, self.offset(*place), stride=self.apart, active=self.active)

    def offset(self, *place: Index) -> Index:
        """The offset of an element from the beginning of the array."""
        return self.function.offset(*zip(place, self.strides, strict=True))


@dataclass(frozen=True, slots=True)
class StackGroups:
    """A stack whose places are taken in groups along one axis, or one by one where there is none."""

    stack: Shape
    axis: int | None
    width: int

    @classmethod
    def of(cls, stack: Shape, most: int, axis: int | None = None) -> "StackGroups":
        """Groups along an axis, the longest if none is given; as wide as registers are, or as there are places."""
        if axis is None and any(size > 1 for size in stack):
            axis = max(range(len(stack)), key=lambda axis: stack[axis])
        if axis is None or stack[axis] < 2 or most < 2:
            return cls(stack, None, 1)
        return cls(stack, axis, min(most, 1 << (stack[axis] - 1).bit_length()))

    def each(
        self,
        function: Function,
        arrays: Sequence[tuple[str, StoredArray, int]],
        write: Callable[[Sequence[Place]], None],
    ) -> None:
        """Write what is done for a group: the arrays, as pointer, layout and number of own axes, at its place."""
        over = [strides_over(stored, self.stack, own) for _, stored, own in arrays]

        def at(offsets: Sequence[Index], active: int | None) -> None:
            places = []
            for (pointer, stored, own), offset, strides in zip(arrays, offsets, over, strict=True):
                begin = function.element(pointer, offset, memory_type(stored.dtype))
                apart = 0 if self.axis is None else strides[self.axis]
                own_strides = stored.strides[len(stored.strides) - own :]
                places.append(Place(function, begin, own_strides, apart, active))
            write(places)

        def loops(axes: Sequence[int], offsets: Sequence[Index]) -> None:
            if axes:
                with function.loop(0, self.stack[axes[0]]) as place:
                    loops(axes[1:], _moved(function, offsets, place, [strides[axes[0]] for strides in over]))
            elif self.axis is None:
                at(offsets, None)
            else:
                size, steps = self.stack[self.axis], [strides[self.axis] for strides in over]
                whole = size - size % self.width
                if whole:
                    with function.loop(0, whole, self.width) as place:
                        at(_moved(function, offsets, place, steps), None)
                if size > whole:
                    at(_moved(function, offsets, whole, steps), size - whole)

        loops([axis for axis in range(len(self.stack)) if axis != self.axis], [0] * len(arrays))


def _moved(function: Function, offsets: Sequence[Index], place: Index, strides: Sequence[int]) -> list[Index]:
    return [function.offset((offset, 1), (place, stride)) for offset, stride in zip(offsets, strides, strict=True)]
