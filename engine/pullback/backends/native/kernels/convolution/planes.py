"""Where a block of the source is copied to, with its zeros around it, so that every tap reads it at a fixed offset.

    [channel][phase][example][first axis]…[last axis]

Results are numbered as elements of such a plane are: result q of a row is at q, and what it meets at a tap lies a fixed
distance further on, also across the ends of rows. So a whole plane of results, or several of them, is one long line, whose
elements between rows mean nothing; they are computed, and left out when results are written.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from math import prod

from pullback.backends.native.kernels.convolution.axes import Axis, Tap
from pullback.backends.native.kernels.convolution.correlation import Correlation
from pullback.backends.native.kernels.convolution.rows import clear_row, copy_row
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import Lanes, memory_type

_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Planes:
    """The copy of a block: so many results along each axis, and the channels of one group."""

    axes: tuple[Axis, ...]
    block: tuple[int, ...]
    channels: int
    line: int
    """Elements in a line of the cache."""

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements along each axis in one phase."""
        return tuple(count + axis.reach for axis, count in zip(self.axes, self.block, strict=True))

    @property
    def pitches(self) -> tuple[int, ...]:
        """Distances of neighbours along each axis."""
        extents = self.extents
        return tuple(prod(extents[axis + 1 :]) for axis in range(len(extents)))

    @property
    def phase_pitches(self) -> tuple[int, ...]:
        """Distances of neighbouring phases of each axis."""
        counts = [len(axis.phases) for axis in self.axes]
        return tuple(prod(self.extents) * prod(counts[axis + 1 :]) for axis in range(len(counts)))

    @property
    def channel_pitch(self) -> int:
        """Distance of channels: an odd number of lines, for those an even number apart would share places of the cache."""
        lines = -(-prod(self.extents) * prod(len(axis.phases) for axis in self.axes) // self.line)
        return (lines + 1 - lines % 2) * self.line

    @property
    def size(self) -> int:
        """Elements in all."""
        return self.channels * self.channel_pitch

    def place(self, number: int, tap: Tap) -> int:
        """How far from a result that which it meets at a tap of one axis is."""
        axis = self.axes[number]
        phase = axis.phases.index(tap.offset % axis.step)
        return phase * self.phase_pitches[number] + axis.shift(tap) * self.pitches[number]

    @property
    def has_zeros(self) -> bool:
        """Whether there is anything around the source."""
        return not all(axis.is_inside for axis in self.axes)


def clear(function: Function, lanes: Lanes, planes: Planes, memory: str) -> None:
    """Zeros everywhere: those around the source stay."""
    clear_row(function, lanes, memory, planes.size)


def fill(
    function: Function,
    lanes: Lanes,
    correlation: Correlation,
    planes: Planes,
    source: str,
    starts: Sequence[Index],
    memory: str,
) -> None:
    """Copy a block of one group: `source` is its first channel, `starts` the first results of the block along each axis."""
    element = memory_type(lanes.dtype)
    strides = correlation.source.along
    with function.loop(0, planes.channels) as channel:
        here = function.element(source, function.mul(channel, correlation.source.channels), element)
        there = function.element(memory, function.mul(channel, planes.channel_pitch), element)
        for phases in product(*(range(len(axis.phases)) for axis in planes.axes)):
            shift = sum(phase * pitch for phase, pitch in zip(phases, planes.phase_pitches, strict=True))
            with ExitStack() as stack:
                rows = stack.enter_context(_rows(function, planes, phases, strides, starts))
                row = function.element(there, function.add(rows.to, shift), element)
                _fill_row(function, lanes, planes, phases[-1], strides[-1], here, rows, row)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a plane: offsets in the source and in the plane, and whether the source has it (None: it has)."""

    of: Index
    to: Index
    inside: str | None


@contextmanager
def _rows(
    function: Function, planes: Planes, phases: Sequence[int], strides: Sequence[int], starts: Sequence[Index]
) -> Iterator[_Row]:
    of: Index = 0
    to: Index = 0
    inside: str | None = None
    with ExitStack() as stack:
        for number, axis in enumerate(planes.axes[:-1]):
            index = stack.enter_context(function.loop(0, planes.extents[number]))
            steps = function.add(function.add(index, starts[number]), axis.low)
            position = function.add(function.mul(steps, axis.step), axis.phases[phases[number]])
            of = function.add(of, function.mul(position, strides[number]))
            to = function.add(to, function.mul(index, planes.pitches[number]))
            if not axis.is_inside:
                here = function.value(f"icmp ult i64 {position}, {axis.size}")
                inside = here if inside is None else function.value(f"and i1 {inside}, {here}")
        yield _Row(of, to, inside)


def _fill_row(
    function: Function, lanes: Lanes, planes: Planes, phase: int, stride: int, source: str, rows: _Row, row: str
) -> None:
    axis, extent = planes.axes[-1], planes.extents[-1]
    first = axis.step * axis.low + axis.phases[phase]  # where the row's first element is, before the source or in it
    begin = max(0, -(first // axis.step))
    end = min(extent, (axis.size - 1 - first) // axis.step + 1)
    if end <= begin:
        return
    element = memory_type(lanes.dtype)

    def copy() -> None:
        here = function.element(source, function.add(rows.of, (first + begin * axis.step) * stride), element)
        there = function.element(row, begin, element)
        copy_row(function, lanes, here, axis.step * stride, there, 1, end - begin)

    if rows.inside is None:
        copy()
        return
    with function.when(rows.inside):
        copy()
    if any(count < along.count for along, count in zip(planes.axes, planes.block, strict=True)):
        # There may be something left of another block.
        with function.when(function.value(f"xor i1 {rows.inside}, true")):
            clear_row(function, lanes, row, extent)
