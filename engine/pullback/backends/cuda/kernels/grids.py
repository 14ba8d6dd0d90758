"""Grids: how the points of a pass are given to threads.

The axes that a pass reduces and those it keeps are two lines. Along each lie *units*: vectors where the line has the axis along
which memory is contiguous, else single positions. A thread has one unit of the kept line (several, if nothing is reduced)
and walks along a part of the reduced one:

    kept line      block > thread > unit of `lanes` elements                 kept_blocks, kept_threads
    reduced line   split > thread, every `reduced_threads`-th unit            splits, reduced_threads

Threads that follow each other lie along the line of contiguous memory. What the reduced threads of a block find is gathered in
shared memory, and what splits find by a pass of its own: sums have one order, and so the same bits in every run.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from pullback.backends.cuda.kernels.passes import needed_in, own_axes
from pullback.backends.llvm.elementary import scalars
from pullback.backends.nests.axes import strides_of
from pullback.backends.nests.nest import Nest, NestRead
from pullback.dataclass import dataclass

THREADS = 256

#: Bytes of one load: the widest that there is.
LOAD_BYTES = 16

#: Blocks that keep a large GPU busy: two for each of 132 multiprocessors.
ENOUGH_BLOCKS = 264

#: Terms that one accumulator of a thread takes one after the other, as on the CPU (`llvm/accumulators.py`).
MOST_TERMS = 128

#: Units, two at least, that a thread should have before a line is split among blocks, whose sums are another kernel.
LEAST_TURNS = 4

#: Bytes that a multiprocessor has to have asked for: what its part of the bandwidth gives in the time of one read.
IN_FLIGHT = 24 * 1024

#: Threads that a multiprocessor is taken to hold: at 64 registers each.
HELD_THREADS = 1024

#: Instructions, about, up to which bodies are repeated: for the lanes of a vector, and for several units.
MOST_REPEATED = 400

#: Registers of a thread that hold what it reads and stores.
HELD_REGISTERS = 64

MOST_SHARED = 48 * 1024

#: Bytes that lie unused between what a block keeps in shared memory, at most.
_BETWEEN = 1024

#: Instructions, about, that make an offset of a position: counted from the end where it is below zero, and kept inside.
_COST_OF_A_POSITION = 6


@dataclass(frozen=True, slots=True)
class Grid:
    """The threads of a pass. Axes of lines are named outermost first; units are of `lanes` elements of the last of one of them."""

    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    along: int
    lanes: int
    rest: int
    """Elements behind the last whole unit: of a nest of one axis only."""
    unroll: int
    """Units that a thread works on at a time, along the reduced line; if there is none, along the kept one."""
    kept_units: int
    reduced_units: int
    kept_threads: int
    reduced_threads: int
    kept_blocks: int
    splits: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.kept_threads * self.reduced_threads

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return self.kept_blocks * self.splits

    @property
    def kept_lanes(self) -> int:
        """Elements of the kept line in a unit."""
        return self.lanes if self.along in self.kept else 1

    @property
    def chunk(self) -> int:
        """Units of the reduced line that a split takes."""
        return math.ceil(self.reduced_units / self.splits)


@dataclass(frozen=True, slots=True)
class GridOfLines:
    """A thread for each line."""

    lines: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return min(THREADS, self.lines)

    @property
    def blocks(self) -> int:
        """Blocks, of which the last one may have threads without a line."""
        return -(-self.lines // self.threads)


@dataclass(frozen=True, slots=True)
class Grids:
    """Grids of as many threads each, whose blocks follow each other."""

    parts: tuple[Grid, ...]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.parts[0].threads

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return sum(part.blocks for part in self.parts)


def grid_of(nest: Nest) -> Grid:
    """The grid of a pass of few axes."""
    along = _along(nest)
    reduced = own_axes(nest)
    lanes = _lanes(nest, along)
    while _shared_bytes(nest, lanes if along not in reduced else 1) > MOST_SHARED and lanes > 1:
        lanes //= 2
    size = nest.space[along]
    rest = size % lanes
    units = dict(enumerate(nest.space)) | {along: size // lanes + (rest > 0)}
    kept_line = _line(nest, frozenset(range(len(nest.space))) - reduced, along)
    reduced_line = _line(nest, reduced, along)
    kept_units = math.prod(units[axis] for axis in kept_line)
    reduced_units = math.prod(units[axis] for axis in reduced_line)
    unroll = _unroll(nest, lanes)
    if not reduced_line:
        per_thread = unroll if kept_units >= unroll * THREADS * ENOUGH_BLOCKS else 1
        blocks = math.ceil(kept_units / (THREADS * per_thread))
        return Grid(kept_line, (), along, lanes, rest, per_thread, kept_units, 1, THREADS, 1, blocks, 1)
    if along in reduced:
        reduced_threads = min(THREADS, _power_of_two(math.ceil(reduced_units / 2)))
        kept_threads = min(THREADS // reduced_threads, _power_of_two(kept_units))
    else:
        kept_threads = min(32, _power_of_two(kept_units))
        reduced_threads = min(THREADS // kept_threads, _power_of_two(math.ceil(reduced_units / 2)))
        kept_threads = min(THREADS // reduced_threads, _power_of_two(kept_units))
    kept_blocks = math.ceil(kept_units / kept_threads)
    wanted = math.ceil(ENOUGH_BLOCKS / kept_blocks)
    most = max(1, reduced_units // (reduced_threads * LEAST_TURNS))
    least = math.ceil(reduced_units / (reduced_threads * MOST_TERMS))
    splits = max(min(wanted, most), least)
    splits = math.ceil(reduced_units / math.ceil(reduced_units / splits))  # none is empty
    if math.ceil(reduced_units / splits) < unroll * reduced_threads:
        unroll = 1
    return Grid(
        kept_line,
        reduced_line,
        along,
        lanes,
        rest,
        unroll,
        kept_units,
        reduced_units,
        kept_threads,
        reduced_threads,
        kept_blocks,
        splits,
    )


def grid_of_rows(nest: Nest) -> Grid:
    """The grid of a pass of several stages: a block has whole rows, as many as its shared memory has room for."""
    grid, of_totals = grid_of(nest), _bytes_of_totals(nest)
    of_element, kept_threads = sum(kept_by_rows(nest).values()), grid.kept_threads

    of_row = grid.lanes * grid.reduced_units * of_element + grid.kept_lanes * of_totals
    while kept_threads * of_row + THREADS * grid.kept_lanes * of_totals + _BETWEEN > MOST_SHARED and kept_threads > 1:
        kept_threads //= 2
    return replace(
        grid,
        unroll=1,
        kept_threads=kept_threads,
        reduced_threads=min(THREADS // kept_threads, _power_of_two(math.ceil(grid.reduced_units / 2))),
        kept_blocks=math.ceil(grid.kept_units / kept_threads),
        splits=1,
    )


def keeps_rows(nest: Nest) -> bool:
    """True if there are several rows, and a block has room for one, whatever the nest stores beside."""
    reduced = own_axes(nest)
    size = math.prod(nest.space[axis] for axis in reduced)
    last = max((axis for axis, extent in enumerate(nest.space) if extent > 1), default=0)
    alongs = {_along(nest), _along(replace(nest, writes=())), last}
    lanes = (
        1 if alongs <= reduced else LOAD_BYTES // min((read.dtype.itemsize for read in nest.reads), default=LOAD_BYTES)
    )
    nbytes = lanes * (size * sum(kept_by_rows(nest).values()) + (THREADS + 1) * _bytes_of_totals(nest)) + _BETWEEN
    return math.prod(nest.space) > size and nbytes <= MOST_SHARED


def kept_by_rows(nest: Nest) -> dict[int, int]:
    """The reads along a row that several stages of a nest need, and the bytes of an element: a block keeps them."""
    axes, reduced = nest.axes_of_values(), own_axes(nest)
    stages = [needed_in(nest, stage) for stage in range(1 + max(nest.stages(), default=0))]
    return {
        number: read.dtype.itemsize
        for number, read in enumerate(nest.reads)
        if not axes[number].isdisjoint(reduced) and sum(number in needed for needed in stages) > 1
    }


def is_aligned(strides: tuple[int, ...], grid: Grid, start: int, itemsize: int) -> bool:
    """True if the lanes of each unit are one load: contiguous, and a multiple of their bytes from where alignment is known."""
    others = (stride for axis, stride in enumerate(strides) if axis != grid.along)
    nbytes = grid.lanes * itemsize
    return strides[grid.along] == 1 and start % nbytes == 0 and not any(stride % grid.lanes for stride in others)


def is_read_at_once(read: NestRead, axes: Sequence[frozenset[int]], grid: Grid, start: int) -> bool:
    """True if the lanes of each unit are one load, whatever the positions are; `axes` are those of values."""
    positions = read.positions
    if any(grid.along in axes[position.value] or position.stride % grid.lanes for position in positions):
        return False
    return is_aligned(read.strides, grid, start, read.dtype.itemsize)


def cost_of_a_lane(nest: Nest) -> int:
    """Instructions, about, of the computations at one point."""
    positions = sum(len(read.positions) for read in nest.reads)
    return 1 + _COST_OF_A_POSITION * positions + sum(scalars.cost(step.primitive, step.dtype) for step in nest.steps)


def _along(nest: Nest) -> int:
    """The axis that most bytes are contiguous along."""

    def contiguous(axis: int) -> int:
        operands = [(read.strides, read.dtype.itemsize) for read in nest.reads]
        operands += [(write.strides, write.dtype.itemsize) for write in nest.writes]
        return sum(itemsize for strides, itemsize in operands if strides[axis] == 1)

    return max(reversed(range(len(nest.space))), key=contiguous)


def _line(nest: Nest, axes: frozenset[int], along: int) -> tuple[int, ...]:
    """Axes from the farthest apart in memory to the nearest; that of contiguous memory last."""
    apart = {axis: sum(abs(strides[axis]) for strides in strides_of(nest)) for axis in axes}
    return tuple(sorted(axes, key=lambda axis: (axis == along, -apart[axis], axis)))


def _lanes(nest: Nest, along: int) -> int:
    """Elements of a unit: as many as the widest load has, if they divide the axis and are not too much to write out."""
    widths = [read.dtype.itemsize for read in nest.reads if read.strides[along] == 1]
    widths += [write.dtype.itemsize for write in nest.writes if write.strides[along] == 1]
    lanes = LOAD_BYTES // max(widths) if widths else 1
    is_line = len(nest.space) == 1
    while lanes > 1 and (
        (nest.space[along] % lanes and not is_line)
        or lanes > nest.space[along]
        or lanes * cost_of_a_lane(nest) > MOST_REPEATED
        or lanes * _registers_of_a_lane(nest) > HELD_REGISTERS
    ):
        lanes //= 2
    return lanes


def _unroll(nest: Nest, lanes: int) -> int:
    """Units that are asked for at once: enough bytes in flight, if their bodies are short."""
    nbytes = HELD_THREADS * lanes * sum(read.dtype.itemsize for read in nest.reads if read.varies)
    wanted = math.ceil(IN_FLIGHT / max(nbytes, 1)) if nbytes else 1
    room = min(
        MOST_REPEATED // (2 * lanes * cost_of_a_lane(nest)), HELD_REGISTERS // (lanes * _registers_of_a_lane(nest))
    )
    return max(1, min(wanted, room, 4))


def _registers_of_a_lane(nest: Nest) -> int:
    """Registers of 4 bytes, about, that hold what one point reads and stores."""
    operands = [read.dtype.itemsize for read in nest.reads if read.varies]
    operands += [write.dtype.itemsize for write in nest.writes]
    return max(1, sum(operands) // 4)


def _shared_bytes(nest: Nest, kept_lanes: int) -> int:
    return THREADS * kept_lanes * _bytes_of_totals(nest)


def _bytes_of_totals(nest: Nest) -> int:
    return sum(nest.dtype_reduced(reduction).itemsize for reduction in nest.reductions)


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()
