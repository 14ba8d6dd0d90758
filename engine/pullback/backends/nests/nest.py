"""Loop nests: elementwise expressions and reductions over one iteration space, as one kernel.

A nest computes values at every point of its space, from what it reads there; it stores some of them, and reduces some of
them along axes of the space. Values are numbered: the reads first, then the steps.

What is written may be the very memory of something read with the same strides; nothing else overlaps.
"""

import math
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from pullback.core.primitive import Primitive
from pullback.core.types import Shape
from pullback.dataclass import dataclass

ReductionKind: TypeAlias = Literal["sum", "prod", "max", "min", "any", "all"]


@dataclass(frozen=True, slots=True)
class Position:
    """A position along one axis of the array that a read takes elements of: an earlier read, of whole numbers, says which it is.

    A position below zero counts from the end of the axis, which has `size` elements, `stride` apart.
    """

    value: int
    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class NestRead:
    """An operand of the nest: its position among the pointers, and its strides in elements along the axes of the space.

    With a period it begins again after that many elements of the last axis; only `axes.with_few_axes` makes such. With positions
    the element is as much further on as they say: on a device only, where positions are looked at elsewhere (`cuda/bounds_checks.py`).
    One that is a total is the result of a reduction of the nest itself: on a device only, of nests that keep rows (`nests/rows.py`).
    """

    pointer: int
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    period: int = 0
    positions: tuple[Position, ...] = ()
    total: int | None = None

    @property
    def varies(self) -> bool:
        """True unless it is the same element at every point."""
        return any(self.strides) or bool(self.positions)


@dataclass(frozen=True, slots=True)
class Constant:
    """A number known now."""

    value: Any


@dataclass(frozen=True, slots=True)
class Step:
    """A value computed from others: a primitive, numbers of values or constants, and the dtypes it computes in."""

    primitive: Primitive
    operands: tuple[int | Constant, ...]
    operand_dtypes: tuple[np.dtype[Any], ...]
    dtype: np.dtype[Any]
    params: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class NestWrite:
    """A value that is stored at every point; strides are those of the array it is stored to."""

    value: int
    pointer: int
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Reduction:
    """A value reduced along axes of the space; strides of the result are 0 along those."""

    value: int
    kind: ReductionKind
    axes: frozenset[int]
    pointer: int
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Nest:
    """One kernel; its text depends on nothing else."""

    space: Shape
    reads: tuple[NestRead, ...]
    steps: tuple[Step, ...]
    writes: tuple[NestWrite, ...]
    reductions: tuple[Reduction, ...]

    def axes_of_values(self) -> list[frozenset[int]]:
        """The axes along which each value varies."""
        axes: list[frozenset[int]] = []
        for read in self.reads:
            own = frozenset(axis for axis, stride in enumerate(read.strides) if stride)
            axes.append(own.union(*(axes[position.value] for position in read.positions)))
        for step in self.steps:
            operands = [axes[operand] for operand in step.operands if not isinstance(operand, Constant)]
            axes.append(frozenset().union(*operands))
        return axes

    @property
    def results(self) -> tuple[int, ...]:
        """The values that are stored and reduced."""
        return (*(write.value for write in self.writes), *(reduction.value for reduction in self.reductions))

    def stages(self) -> list[int]:
        """The number of reductions of the nest that each value waits for, one behind the other."""
        stages: list[int | None] = [0 if read.total is None else None for read in self.reads]

        def stage(value: int) -> int:
            found = stages[value]
            if found is None:
                total = self.reads[value].total
                assert total is not None  # noqa: S101 - as above
                found = stages[value] = stage(self.reductions[total].value) + 1
            return found

        for step in self.steps:
            stages.append(  # noqa: PERF401 - a step asks for those before it
                max((stage(one) for one in step.operands if not isinstance(one, Constant)), default=0)
            )
        return [stage(value) for value in range(len(stages))]

    @property
    def period(self) -> int:
        """The period of the reads that have one; it is the same for all."""
        return max((read.period for read in self.reads), default=0)

    def dtype_of(self, value: int) -> np.dtype[Any]:
        """The dtype of a value."""
        first = len(self.reads)
        return self.reads[value].dtype if value < first else self.steps[value - first].dtype

    @property
    def widest(self) -> int:
        """Bytes of the widest dtype of what varies over the space; 4 at least, since masks are of that width."""
        depends = self.axes_of_values()
        dtypes = [read.dtype for read in self.reads if any(read.strides)]
        for number, step in enumerate(self.steps, len(self.reads)):
            if depends[number]:
                dtypes.append(step.dtype)
                dtypes += step.operand_dtypes
        dtypes += [write.dtype for write in self.writes]
        dtypes += [self.dtype_reduced(reduction) for reduction in self.reductions]
        return max([4, *(dtype.itemsize for dtype in dtypes)])

    def dtype_reduced(self, reduction: Reduction) -> np.dtype[Any]:
        """The dtype that values are reduced in: that of the result, but truth values are counted in half as wide integers."""
        of_truths = reduction.kind == "sum" and self.dtype_of(reduction.value).kind == "b"
        small = math.prod(self.space) < 2**31
        return np.dtype("i4") if of_truths and small and reduction.dtype.kind == "i" else reduction.dtype

    def computing(self, writes: tuple[NestWrite, ...], reductions: tuple[Reduction, ...]) -> "Nest":
        """The nest that gives these of its results, without the reads and the steps that they do not need."""
        first = len(self.reads)
        needed = {result.value for result in writes} | {result.value for result in reductions}
        for number in reversed(range(first, first + len(self.steps))):
            if number in needed:
                operands = self.steps[number - first].operands
                needed.update(operand for operand in operands if not isinstance(operand, Constant))
        for number in reversed(range(first)):
            if number in needed:
                needed.update(position.value for position in self.reads[number].positions)
        numbers = {number: place for place, number in enumerate(sorted(needed))}
        steps = [
            replace(step, operands=tuple(_renumbered(operand, numbers) for operand in step.operands))
            for number, step in enumerate(self.steps, first)
            if number in needed
        ]
        return Nest(
            self.space,
            tuple(_renumbered_read(read, numbers) for number, read in enumerate(self.reads) if number in needed),
            tuple(steps),
            tuple(replace(write, value=numbers[write.value]) for write in writes),
            tuple(replace(reduction, value=numbers[reduction.value]) for reduction in reductions),
        )


def _renumbered(operand: int | Constant, numbers: dict[int, int]) -> int | Constant:
    return operand if isinstance(operand, Constant) else numbers[operand]


def _renumbered_read(read: NestRead, numbers: dict[int, int]) -> NestRead:
    if not read.positions:
        return read
    return replace(read, positions=tuple(replace(one, value=numbers[one.value]) for one in read.positions))
