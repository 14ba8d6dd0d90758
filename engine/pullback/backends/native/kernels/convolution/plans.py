"""Plans of correlations: what is copied, in which blocks, and how results are numbered and written."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from pullback.backends.native.kernels.convolution.correlation import Correlation
from pullback.backends.native.kernels.convolution.planes import Planes
from pullback.backends.native.kernels.convolution.tiles import Tile, choose_tile, tile_cycles
from pullback.dataclass import dataclass

#: A copied block of the source stays in a second-level cache of a megabyte, beside weights and results. The weights
#: are read again for every block, so it may be as large as they are: 512 channels of 7 x 7 then take 0.88 of the time.
_LEAST_BLOCK, _LARGEST_BLOCK = 256 * 1024, 768 * 1024

#: Small examples are taken together until a line of results is so many numbers long.
_LONG_ENOUGH = 512

#: Cycles to copy a number in rows, and to copy it across them, for choosing between plans.
_COPIED, _TURNED = 0.25, 0.75

_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Plan:
    """The `flat` innermost axes of a block are one line; results of the others are lines of their own."""

    correlation: Correlation
    planes: Planes | None
    """The copy of a block; None where the source is read as it lies."""
    block: tuple[int, ...]
    order: tuple[int, ...]
    """Axes from the outermost to the innermost."""
    pitches: tuple[int, ...]
    """Distances in a line of results, and in what they are computed from, of neighbours along each axis."""
    flat: int
    tile: Tile
    lanes: int
    skips: tuple[int, ...] = ()
    """Axes along which taps that read nothing but zeros are left out, for one result after the other."""

    @property
    def vector_bits(self) -> int:
        """Width of vectors."""
        return 8 * self.lanes * self.correlation.dtype.itemsize

    @property
    def is_by_places(self) -> bool:
        """True if a line is summed place by place along the last axis, the examples of one place at a time."""
        return len(self.correlation.axes) - 1 in self.skips

    @property
    def apart(self) -> tuple[int, ...]:
        """Axes along which lines are apart."""
        return self.order[: len(self.order) - self.flat]

    @property
    def joined(self) -> tuple[int, ...]:
        """Axes that are in a line."""
        return self.order[len(self.order) - self.flat :]

    @property
    def length(self) -> int:
        """Results in a line, with what lies between rows."""
        return 1 + sum((self.block[axis] - 1) * self.pitches[axis] for axis in self.joined)

    @property
    def span(self) -> int:
        """Results of a tile along the line."""
        return self.tile.vectors * self.lanes

    @property
    def is_direct(self) -> bool:
        """True if lines are written where they belong, not to memory from where rows are copied."""
        axes, target = self.correlation.axes, self.correlation.target.along
        if any(len(axis.courses) > 1 for axis in axes):
            return False
        dense = 1
        for number in reversed(self.joined):
            if self.block[number] > 1 and not axes[number].spread * target[number] == self.pitches[number] == dense:
                return False
            dense *= self.block[number]
        return True

    @property
    def is_bounded(self) -> bool:
        """True if nothing may be read or written past the end of a line."""
        return self.planes is None or self.is_direct

    @property
    def line_pitch(self) -> int:
        """Distance of lines of neighbouring channels, where they are not direct."""
        line = _LINE_BYTES // self.correlation.dtype.itemsize
        length = self.length + (self.span if self.is_by_places else 0)
        lines = -(-(-(-length // self.span) * self.span) // line)
        return (lines + 1 - lines % 2) * line

    @property
    def copied(self) -> int:
        """Elements of memory for the copy; what the last line reads past its end is there too."""
        return 0 if self.planes is None else self.planes.size + (self.tile.vectors + 1) * max(self.lanes, 16)

    @property
    def most_bytes(self) -> int:
        """Memory that it needs, wherever results are written."""
        return (self.copied + self.tile.outs * self.line_pitch) * self.correlation.dtype.itemsize

    @property
    def cycles(self) -> float:
        """The expected cycles for one example, for choosing between plans."""
        correlation = self.correlation
        taps = prod(
            axis.mean_met if number in self.skips else max(len(course.taps) for course in axis.courses)
            for number, axis in enumerate(correlation.axes)
        )
        classes = prod(len(axis.courses) for axis in correlation.axes)
        lines = prod(self.block[axis] for axis in self.apart)
        length = self.length
        if self.is_by_places:
            lines, length = lines * self.block[-1], self.block[0]
        sums = (
            correlation.ins
            * taps
            * classes
            * lines
            * tile_cycles(self.tile, correlation.outs, length, self.lanes, self.vector_bits)
        )
        per_number = _TURNED if self.planes and self.planes.has_examples_innermost else _COPIED
        numbers = self.planes.size if self.planes else 0
        numbers += 0 if self.is_direct else correlation.outs * prod(self.block) * classes
        blocks = prod(-(-axis.count // count) for axis, count in zip(correlation.axes, self.block, strict=True))
        return (sums + numbers * per_number) * blocks / correlation.axes[0].count


def make_plan(correlation: Correlation, vector_bits: int, most_bytes: int) -> Plan:
    """The plan that is expected to be the fastest, for a width of vectors and a limit of memory."""
    plans = [plan for plan in _plans(correlation, vector_bits) if plan.most_bytes <= most_bytes]
    return min(plans, key=lambda plan: plan.cycles)


def scratch_bytes(correlation: Correlation, vector_bits: int) -> int:
    """Bytes for the plan of operands in C order, and for one that suits all layouts."""
    plans = list(_plans(correlation, vector_bits))
    copying = (plan for plan in plans if plan.planes is not None)
    return max(min(some, key=lambda plan: plan.cycles).most_bytes for some in (plans, copying))


def _plans(correlation: Correlation, vector_bits: int) -> Iterator[Plan]:
    """Every plan as it is, and leaving out what can be left out."""
    skippable = [number for number, axis in enumerate(correlation.axes) if axis.can_skip]
    for plan in _whole_plans(correlation, vector_bits):
        yield plan
        skips = tuple(axis for axis in plan.apart if axis in skippable)
        if plan.planes is not None and skips:
            yield replace(plan, skips=skips)
    if len(correlation.axes) - 1 in skippable:
        yield from _plans_by_places(correlation, tuple(skippable), vector_bits)


def _plans_by_places(correlation: Correlation, skips: tuple[int, ...], vector_bits: int) -> Iterator[Plan]:
    lanes = max(1, vector_bits // (8 * correlation.dtype.itemsize))
    line = _LINE_BYTES // correlation.dtype.itemsize
    last = len(correlation.axes) - 1
    whole = tuple(axis.count for axis in correlation.axes[1:])
    for vectors in (1, 2, 4):
        if vectors * lanes > correlation.axes[0].count:
            return
        planes = Planes(correlation.axes, (vectors * lanes, *whole), correlation.ins, (*range(1, last + 1), 0), line)
        if planes.size * correlation.dtype.itemsize > _LARGEST_BLOCK:
            return
        plan = _plan(correlation, planes, planes.block, planes.order, planes.pitches, 2, vector_bits)
        tile = choose_tile(correlation.outs, vectors * lanes, lanes, vector_bits)
        yield replace(plan, tile=tile, skips=tuple(axis for axis in skips if axis in (*plan.apart, last)))


def _whole_plans(correlation: Correlation, vector_bits: int) -> Iterator[Plan]:
    in_place = _block_in_place(correlation)
    last = len(correlation.axes) - 1
    as_it_lies = tuple(range(last + 1))
    if in_place:
        for flat in range(1, last + 1):
            yield _plan(correlation, None, in_place, as_it_lies, correlation.source.along, flat, vector_bits)
    line = _LINE_BYTES // correlation.dtype.itemsize
    example = (1, *(axis.count for axis in correlation.axes[1:]))
    one = Planes(correlation.axes, example, correlation.ins, as_it_lies, line)
    planes = replace(one, block=_block(correlation, one.channel_pitch))
    for flat in range(1, last + 2):
        yield _plan(correlation, planes, planes.block, as_it_lies, planes.pitches, flat, vector_bits)
    together = _examples_side_by_side(correlation, one, vector_bits)
    if together > 1:
        planes = replace(one, block=(together, *example[1:]), order=(*range(1, last + 1), 0))
        for flat in range(2, last + 2):
            yield _plan(correlation, planes, planes.block, planes.order, planes.pitches, flat, vector_bits)


def _plan(
    correlation: Correlation,
    planes: Planes | None,
    block: tuple[int, ...],
    order: tuple[int, ...],
    pitches: tuple[int, ...],
    flat: int,
    vector_bits: int,
) -> Plan:
    lanes = max(1, vector_bits // (8 * correlation.dtype.itemsize))
    plan = Plan(correlation, planes, block, order, pitches, flat, Tile(1, 1), lanes)
    return replace(plan, tile=choose_tile(correlation.outs, plan.length, lanes, vector_bits))


def _block_in_place(correlation: Correlation) -> tuple[int, ...] | None:
    """The block where the source can be read as it lies: without zeros or steps, in rows one after the other."""
    axes, strides = correlation.axes, correlation.source.along
    if strides[-1] != 1 or not all(axis.is_inside and axis.step == 1 for axis in axes):
        return None
    if not all(strides[k] == strides[k + 1] * axes[k + 1].size for k in range(1, len(axes) - 1)):
        return None
    return (1, *_block(correlation, prod(axis.size for axis in axes[1:]))[1:])


def _block_bytes(correlation: Correlation) -> int:
    taps = prod(sum(len(course.taps) for course in axis.courses) for axis in correlation.axes)
    weights = correlation.ins * correlation.outs * taps * correlation.dtype.itemsize
    return min(max(weights, _LEAST_BLOCK), _LARGEST_BLOCK)


def _block(correlation: Correlation, example: int) -> tuple[int, ...]:
    """Results along each axis in one block, for a number of elements in a channel of an example."""
    axes = correlation.axes
    counts = tuple(axis.count for axis in axes)
    bytes_ = correlation.ins * example * correlation.dtype.itemsize
    most = _block_bytes(correlation)
    if bytes_ <= most:
        together = min(most // max(1, bytes_), -(-_LONG_ENOUGH // prod(counts[1:])))
        return (_balanced(counts[0], together), *counts[1:])
    if len(axes) == 2:
        return (1, counts[1])  # a row is not divided
    rows = max(1, most * (counts[1] + axes[1].reach) // bytes_ - axes[1].reach)
    return (1, _balanced(counts[1], rows), *counts[2:])


def _examples_side_by_side(correlation: Correlation, one: Planes, vector_bits: int) -> int:
    """The number of examples that lie side by side where they are innermost: enough for a line of several vectors."""
    lanes = max(1, vector_bits // (8 * correlation.dtype.itemsize))
    bytes_ = one.size * correlation.dtype.itemsize
    return _balanced(correlation.axes[0].count, min(lanes, _block_bytes(correlation) // bytes_))


def _balanced(count: int, most: int) -> int:
    """The smallest block that needs no more turns than the largest."""
    turns = -(-count // max(1, min(count, most)))
    return -(-count // turns)
