"""Planes: a block of the source copied with its zeros around it, so that every tap reads it at a fixed offset.

    [channel][phase][example][first axis]…[last axis]       or, of small examples,
    [channel][phase][first axis]…[last axis][example]

Results are numbered as elements of such a plane are: result q of a row is at q, and what it reads at a tap lies a fixed
distance further on, also across the ends of rows. So a whole plane of results, or several of them, is one long line, whose
elements between rows mean nothing; they are computed, and left out when results are written. The zeros after a row are also
those before the next one, so with a window of three there is one such element a row. Where examples are innermost there is
none at all in a row of results.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from math import prod

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.kernels.convolution.correlation import Layout
from pullback.backends.native.kernels.convolution.row_loops import clear_row, copy_row, transpose_rows
from pullback.backends.native.kernels.convolution.sliding_window import Axis, Tap
from pullback.dataclass import dataclass


@dataclass(frozen=True)
class Planes:
    """The copy of a block: of `block` results along each axis, and of the channels of one group."""

    axes: tuple[Axis, ...]
    block: tuple[int, ...]
    channels: int
    order: tuple[int, ...]
    """Axes from the outermost to the innermost."""
    line: int
    """Elements in a line of the cache."""

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Elements along each axis in one phase."""
        return tuple(count + axis.reach for axis, count in zip(self.axes, self.block, strict=True))

    @cached_property
    def pitches(self) -> tuple[int, ...]:
        """Distances of neighbours along each axis."""
        pitches, pitch = [0] * len(self.axes), 1
        for number in reversed(self.order):
            axis, whole = self.axes[number], self.block[number] == self.axes[number].count
            pitches[number] = pitch
            pitch *= self.extents[number] - (axis.shared if whole else 0)
        return tuple(pitches)

    @cached_property
    def volume(self) -> int:
        """Elements of one phase of one channel."""
        return 1 + sum((extent - 1) * pitch for extent, pitch in zip(self.extents, self.pitches, strict=True))

    @cached_property
    def phase_pitches(self) -> tuple[int, ...]:
        """Distances of neighbouring phases of each axis."""
        counts = [len(axis.phases) for axis in self.axes]
        return tuple(self.volume * prod(counts[axis + 1 :]) for axis in range(len(counts)))

    @cached_property
    def channel_pitch(self) -> int:
        """Distance of channels: an odd number of lines, for those an even number apart would share places of the cache."""
        lines = -(-self.volume * prod(len(axis.phases) for axis in self.axes) // self.line)
        return (lines + 1 - lines % 2) * self.line

    @cached_property
    def size(self) -> int:
        """Elements in all."""
        return self.channels * self.channel_pitch

    def place(self, number: int, tap: Tap) -> int:
        """Offset from a result to the input element it reads at `tap`, along one axis."""
        axis = self.axes[number]
        phase = axis.phases.index(tap.offset % axis.step)
        return phase * self.phase_pitches[number] + axis.shift(tap) * self.pitches[number]

    @cached_property
    def has_zeros(self) -> bool:
        """True if there is anything around the source."""
        return not all(axis.is_inside for axis in self.axes)

    @cached_property
    def is_part(self) -> bool:
        """True if a block is part of an example, and another block may have left something where there are to be zeros."""
        return any(count < axis.count for axis, count in zip(self.axes[1:], self.block[1:], strict=True))

    @cached_property
    def has_examples_innermost(self) -> bool:
        """True if examples lie side by side."""
        return self.order[-1] == 0


def clear(function: Function, lanes: Lanes, planes: Planes, memory: str) -> None:
    """Set everything to zero; the zeros around the source are never overwritten."""
    clear_row(function, lanes, memory, planes.size)


def spread(
    function: Function,
    lanes: Lanes,
    target: Layout,
    planes: Planes,
    memory: str,
    starts: Sequence[Index],
    result: str,
) -> None:
    """Copy a block back to the source; elements that no result reads are not written."""
    _each_phase(function, lanes, target, planes, result, starts, memory, back=True)


def fill(
    function: Function,
    lanes: Lanes,
    layout: Layout,
    planes: Planes,
    source: str,
    starts: Sequence[Index],
    memory: str,
) -> None:
    """Copy a block of one group: `source` is its first channel, `starts` the first results of the block along each axis."""
    _each_phase(function, lanes, layout, planes, source, starts, memory, back=False)


def _each_phase(
    function: Function,
    lanes: Lanes,
    layout: Layout,
    planes: Planes,
    source: str,
    starts: Sequence[Index],
    memory: str,
    *,
    back: bool,
) -> None:
    element = memory_type(lanes.dtype)
    with ExitStack() as stack:
        channel = stack.enter_context(function.loop(0, planes.channels))
        source_channel = function.element(source, function.mul(channel, layout.channels), element)
        copied_channel = function.element(memory, function.mul(channel, planes.channel_pitch), element)
        phases: list[Index] = []
        for axis, pitch in zip(planes.axes[:-1], planes.phase_pitches[:-1], strict=True):
            number = stack.enter_context(function.loop(0, len(axis.phases)))
            copied_channel = function.element(copied_channel, function.mul(number, pitch), element)
            phases.append(_phase(function, axis, number))
        last, pitch = planes.axes[-1], planes.phase_pitches[-1]
        filling = _Filling(function, lanes, planes, layout.along, starts, back)
        if len(last.phases) > _FEW_PHASES and len({last.met(phase) for phase in last.phases}) == 1:
            with function.loop(0, len(last.phases)) as number:
                part = function.element(copied_channel, function.mul(number, pitch), element)
                filling.fill(source_channel, part, [*phases, _phase(function, last, number)], last.met(last.phases[0]))
        else:
            for number, phase in enumerate(last.phases):
                part = function.element(copied_channel, number * pitch, element)
                filling.fill(source_channel, part, [*phases, phase], last.met(phase))


#: So many phases of a row are written one after the other; more are walked by a loop where they are alike.
_FEW_PHASES = 2


def _phase(function: Function, axis: Axis, number: Index) -> Index:
    """A phase of an axis by its number."""
    phases = axis.phases
    if isinstance(number, int):
        return phases[number]
    if phases == tuple(range(phases[0], phases[0] + len(phases))):
        return function.add(number, phases[0])
    numbers = ", ".join(f"i64 {phase}" for phase in phases)
    table = function.module.constant(f"[{len(phases)} x i64]", f"[{numbers}]")
    return function.load("i64", function.element(table, number, "i64"))


@dataclass(frozen=True, slots=True)
class _Filling:
    """A copy of the phases of one channel; with `back` it is copied back to the source."""

    function: Function
    lanes: Lanes
    planes: Planes
    strides: Sequence[int]
    starts: Sequence[Index]
    back: bool

    def fill(self, source: str, target: str, phases: Sequence[Index], span: tuple[int, int]) -> None:
        """Copy one phase row by row, of one example or of all that lie side by side; rows outside the source are zeros.

        `span` is the part of a row, in elements of the phase, that is in the source.
        """
        function, planes, strides = self.function, self.planes, self.strides
        element, last = memory_type(self.lanes.dtype), len(planes.axes) - 1
        source_offset: Index = 0
        row_offset: Index = 0
        inside: str | None = None
        with ExitStack() as stack:
            for number in range(last):
                axis = planes.axes[number]
                if number == 0 and planes.has_examples_innermost:
                    source_offset = function.mul(self.starts[0], strides[0])
                    continue
                index = stack.enter_context(function.loop(0, planes.extents[number]))
                steps = function.add(function.add(index, self.starts[number]), axis.low)
                position = function.add(function.mul(steps, axis.step), phases[number])
                source_offset = function.add(source_offset, function.mul(position, strides[number]))
                row_offset = function.add(row_offset, function.mul(index, planes.pitches[number]))
                if not axis.is_inside:
                    on_axis = function.value(f"icmp ult i64 {position}, {axis.size}")
                    inside = on_axis if inside is None else function.value(f"and i1 {inside}, {on_axis}")
            row = function.element(target, row_offset, element)
            if inside is None:
                self._copy(source, source_offset, row, phases[-1], span)
                return
            with function.when(inside):
                self._copy(source, source_offset, row, phases[-1], span)
            if planes.is_part and not self.back:
                with function.when(function.value(f"xor i1 {inside}, true")):
                    clear_row(function, self.lanes, row, planes.extents[last] * planes.pitches[last])

    def _copy(self, source: str, source_offset: Index, row: str, phase: Index, span: tuple[int, int]) -> None:
        function, planes = self.function, self.planes
        element, axis, stride = memory_type(self.lanes.dtype), planes.axes[-1], self.strides[-1]
        begin, end = span
        if end <= begin:
            return
        first = function.mul(function.add(axis.step * (axis.low + begin), phase), stride)
        in_source = function.element(source, function.add(source_offset, first), element)
        in_copy = function.element(row, begin * planes.pitches[-1], element)
        if self.back:
            copy_row(function, self.lanes, in_copy, 1, in_source, axis.step * stride, end - begin)
        elif planes.has_examples_innermost:
            rows, strides = planes.block[0], (self.strides[0], axis.step * stride)
            transpose_rows(function, self.lanes, in_source, strides, in_copy, planes.pitches[-1], rows, end - begin)
        else:
            copy_row(function, self.lanes, in_source, axis.step * stride, in_copy, 1, end - begin)
