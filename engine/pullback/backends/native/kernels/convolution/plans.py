"""How a correlation is carried out: what is copied, in which blocks, and how results are numbered and written."""

from dataclasses import dataclass, replace
from math import prod

from pullback.backends.native.kernels.convolution.correlation import Correlation
from pullback.backends.native.kernels.convolution.planes import Planes
from pullback.backends.native.kernels.convolution.tiles import Tile, choose_tile

#: What is copied of the source at a time stays in a second-level cache of half a megabyte, beside weights and results.
BLOCK_BYTES = 256 * 1024

#: Small examples are taken together until a line of results is so many numbers long.
_LONG_ENOUGH = 512

_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Plan:
    """The last `flat` axes of a block are one line; results of the others are lines of their own."""

    correlation: Correlation
    planes: Planes | None
    """The copy of a block; None where the source is read as it lies."""
    block: tuple[int, ...]
    pitches: tuple[int, ...]
    """Distances in a line of results, and in what they are computed from, of neighbours along each axis."""
    flat: int
    tile: Tile
    lanes: int

    @property
    def length(self) -> int:
        """Results in a line, with what lies between rows."""
        return _length(self.block, self.pitches, self.flat)

    @property
    def span(self) -> int:
        """Results of a tile along the line."""
        return self.tile.vectors * self.lanes

    @property
    def is_direct(self) -> bool:
        """Whether lines are written where they belong, not to memory from where rows are copied."""
        axes, target = self.correlation.axes, self.correlation.target.along
        first = len(axes) - self.flat
        in_place = all(
            axes[k].spread * target[k] == self.pitches[k] for k in range(first, len(axes)) if self.block[k] > 1
        )
        dense = all(
            self.pitches[k] == self.block[k + 1] * self.pitches[k + 1]
            for k in range(first, len(axes) - 1)
            if self.block[k] > 1
        )
        return in_place and dense

    @property
    def is_bounded(self) -> bool:
        """Whether nothing may be read or written past the end of a line."""
        return self.planes is None or self.is_direct

    @property
    def line_pitch(self) -> int:
        """Distance of lines of neighbouring channels, where they are not direct."""
        line = _LINE_BYTES // self.correlation.dtype.itemsize
        lines = -(-(-(-self.length // self.span) * self.span) // line)
        return (lines + 1 - lines % 2) * line

    @property
    def copied(self) -> int:
        """Elements of memory for the copy; what the last line reads past its end is there too."""
        return 0 if self.planes is None else self.planes.size + self.span + self.lanes

    @property
    def most_bytes(self) -> int:
        """Memory that it needs, wherever results are written."""
        return (self.copied + self.tile.outs * self.line_pitch) * self.correlation.dtype.itemsize


def _length(block: tuple[int, ...], pitches: tuple[int, ...], flat: int) -> int:
    return 1 + sum((count - 1) * pitch for count, pitch in zip(block[-flat:], pitches[-flat:], strict=True))


def make_plan(correlation: Correlation, vector_bits: int) -> Plan:
    """The plan for vectors of so many bits."""
    lanes = max(1, vector_bits // (8 * correlation.dtype.itemsize))
    if correlation.is_empty:
        counts = tuple(axis.count for axis in correlation.axes)
        return Plan(correlation, None, counts, correlation.target.along, 1, Tile(1, 1), lanes)
    as_it_lies = _plan_in_place(correlation, vector_bits, lanes)
    return as_it_lies or _plan_copying(correlation, vector_bits, lanes)


def most_scratch(correlation: Correlation, vector_bits: int) -> int:
    """Bytes that suffice for the correlation in any layout of its operands."""
    if correlation.is_empty:
        return 0
    lanes = max(1, vector_bits // (8 * correlation.dtype.itemsize))
    plans = (_plan_copying(correlation, vector_bits, lanes), _plan_in_place(correlation, vector_bits, lanes))
    return max(plan.most_bytes for plan in plans if plan)


def _plan_in_place(correlation: Correlation, vector_bits: int, lanes: int) -> Plan | None:
    axes, strides = correlation.axes, correlation.source.along
    if strides[-1] != 1 or not all(axis.is_inside and axis.step == 1 for axis in axes):
        return None
    nested = all(strides[k] >= strides[k + 1] * axes[k + 1].size for k in range(1, len(axes) - 1))
    if not nested:
        return None
    block = _block(correlation, prod(axis.size for axis in axes[1:]))
    block = (1, *block[1:])
    return _finished(correlation, None, block, strides, vector_bits, lanes, most_flat=len(axes) - 1)


def _plan_copying(correlation: Correlation, vector_bits: int, lanes: int) -> Plan:
    line = _LINE_BYTES // correlation.dtype.itemsize
    one = Planes(correlation.axes, (1, *(axis.count for axis in correlation.axes[1:])), correlation.ins, line)
    planes = replace(one, block=_block(correlation, one.channel_pitch))
    return _finished(correlation, planes, planes.block, planes.pitches, vector_bits, lanes, most_flat=len(planes.block))


def _block(correlation: Correlation, example: int) -> tuple[int, ...]:
    """Results along each axis in one block, where one channel of one example has so many elements."""
    axes = correlation.axes
    counts = tuple(axis.count for axis in axes)
    bytes_ = correlation.ins * example * correlation.dtype.itemsize
    if bytes_ <= BLOCK_BYTES:
        together = min(BLOCK_BYTES // max(1, bytes_), -(-_LONG_ENOUGH // prod(counts[1:])))
        return (_balanced(counts[0], together), *counts[1:])
    if len(axes) == 2:
        return (1, counts[1])  # a row is not divided
    rows = max(1, BLOCK_BYTES * (counts[1] + axes[1].reach) // bytes_ - axes[1].reach)
    return (1, _balanced(counts[1], rows), *counts[2:])


def _balanced(count: int, most: int) -> int:
    """The smallest block that needs no more turns than the largest."""
    turns = -(-count // max(1, min(count, most)))
    return -(-count // turns)


def _finished(
    correlation: Correlation,
    planes: Planes | None,
    block: tuple[int, ...],
    pitches: tuple[int, ...],
    vector_bits: int,
    lanes: int,
    *,
    most_flat: int,
) -> Plan:
    def vectors(flat: int) -> int:
        """How many vectors a block's results fill; of equals the longer line is better."""
        return prod(block[: len(block) - flat]) * -(-_length(block, pitches, flat) // lanes)

    flat = min(range(most_flat, 0, -1), key=vectors)
    tile = choose_tile(correlation.outs, _length(block, pitches, flat), lanes, vector_bits)
    return Plan(correlation, planes, block, pitches, flat, tile, lanes)
