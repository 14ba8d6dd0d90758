"""The gradient of a convolution with respect to its weights (weight_sums.py), with vectors across channels.

x is copied with its zeros, channels last: what one result reads along the last axis of the kernel is then one run of
numbers, which are multiplied with that result of a few outputs and added to sums in registers. Nothing is summed but what
belongs to a result: an infinity that no result reads at a tap does not touch that tap's sum.

    for blocks of examples and rows:  copy the block
        for groups, tiles of outputs, rows of taps, tiles of the run:  sums over the block's results, added to those in memory
    the sums to where the weights lie

Sums over a block are added up apart, and then to those of the blocks before: errors of rounding grow with the results of
one block and with the number of blocks, not with all results.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from math import prod

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.kernels.convolution.row_loops import clear_row, transpose_rows
from pullback.backends.native.kernels.convolution.tiles import Tile, choose_tile, tile_cycles
from pullback.backends.native.kernels.convolution.weight_sums import WeightSums
from pullback.core.types import Shape
from pullback.dataclass import dataclass

#: Bytes of the data that are copied at a time.
_BLOCK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SummingPlan:
    """A plan of the sums: width of vectors, size of tiles, rows of a block."""

    sums: WeightSums
    lanes: int
    tile: Tile
    rows: int
    """Results along the first axis in one block."""

    @property
    def vector_bits(self) -> int:
        """Width of vectors."""
        return 8 * self.lanes * self.sums.dtype.itemsize

    @property
    def span(self) -> Shape:
        """Positions along each axis that results of a block read."""
        sliding = self.sums.sliding
        counts = (self.rows, *sliding.out[1:])
        return tuple(
            stride * (count - 1) + dilation * (kernel - 1) + 1
            for stride, count, dilation, kernel in zip(
                sliding.stride, counts, sliding.dilation, sliding.kernel, strict=True
            )
        )

    @property
    def pitches(self) -> Shape:
        """Distances in the copy of neighbours along each axis."""
        span = self.span
        return tuple(prod(span[axis + 1 :]) * self.sums.ins for axis in range(len(span)))

    @property
    def group_pitch(self) -> int:
        """Distance in the copy of groups."""
        return prod(self.span) * self.sums.ins

    @property
    def copied(self) -> int:
        """Elements of memory for the copy, and what is read past its end."""
        return -(-(self.sums.groups * self.group_pitch + self.tile.vectors * self.lanes) // 16) * 16

    @property
    def runs(self) -> Shape:
        """The number of runs along each axis of the kernel; one along the last, if its elements are joined."""
        kernel = self.sums.sliding.kernel
        return (*kernel[:-1], 1) if self.is_joined else kernel

    @property
    def is_joined(self) -> bool:
        """True if the elements read along the whole last axis of the kernel are adjacent."""
        return _is_joined(self.sums)

    @property
    def run(self) -> int:
        """Numbers in a run."""
        return _run(self.sums)

    @property
    def run_pitch(self) -> int:
        """Distance of runs of sums."""
        width = self.tile.vectors * self.lanes
        return -(-self.run // width) * width

    @property
    def tiles(self) -> int:
        """Tiles of outputs in a group."""
        return -(-self.sums.outs // self.tile.outs)

    @property
    def summed(self) -> int:
        """Elements of memory for the sums."""
        return self.sums.groups * self.tiles * self.tile.outs * prod(self.runs) * self.run_pitch

    @property
    def cycles(self) -> float:
        """The expected cycles for one example, for choosing how."""
        pixels = prod(self.sums.sliding.out) * prod(self.runs) * self.sums.groups
        copied = 1.0 * self.sums.groups * self.group_pitch
        return pixels * tile_cycles(self.tile, self.sums.outs, self.run, self.lanes, self.vector_bits) + copied

    @property
    def bytes(self) -> int:
        """Memory that it needs."""
        return (self.copied + self.summed) * self.sums.dtype.itemsize


def _is_joined(sums: WeightSums) -> bool:
    return sums.sliding.dilation[-1] == 1


def _run(sums: WeightSums) -> int:
    return sums.ins * sums.sliding.kernel[-1] if _is_joined(sums) else sums.ins


def make_summing_plan(sums: WeightSums, vector_bits: int) -> SummingPlan:
    """The plan for a width of vectors in bits."""
    lanes = max(1, vector_bits // (8 * sums.dtype.itemsize))
    # Channels of y are often a power of two apart: more than eight of them would share too few places of the cache.
    tile = choose_tile(sums.outs, _run(sums), lanes, vector_bits, most_outs=8)
    whole = SummingPlan(sums, lanes, tile, sums.sliding.out[0])
    row = sums.groups * whole.pitches[0] * sums.dtype.itemsize * sums.sliding.stride[0]
    reach = sums.sliding.dilation[0] * (sums.sliding.kernel[0] - 1)
    rows = max(1, (_BLOCK_BYTES // row) - reach // sums.sliding.stride[0])
    turns = -(-whole.rows // min(whole.rows, rows))
    return SummingPlan(sums, lanes, tile, -(-whole.rows // turns))


def write_sums(function: Function, plan: SummingPlan, y: str, x: str, weights: str, scratch: str) -> None:
    """The body of a kernel."""
    _Writer(function, plan, y, x, weights, scratch).write()


class _Writer:
    def __init__(self, function: Function, plan: SummingPlan, y: str, x: str, weights: str, scratch: str) -> None:
        self.function = function
        self.plan = plan
        self.sums = plan.sums
        self.sliding = plan.sums.sliding
        self.lanes = Lanes(function, plan.sums.dtype, plan.lanes)
        self.element = memory_type(plan.sums.dtype)
        self.y = y
        self.x = x
        self.weights = weights
        self.copy = scratch
        self.memory = self._at(scratch, plan.copied)

    def _at(self, pointer: str, index: Index) -> str:
        return self.function.element(pointer, index, self.element)

    def write(self) -> None:
        """Write the blocks and their sums, then copy the sums to the weights."""
        function, plan, sums = self.function, self.plan, self.sums
        clear_row(function, self.lanes, self.copy, plan.copied + plan.summed)
        with function.loop(0, sums.examples) as example:
            x = self._at(self.x, function.mul(example, sums.x.examples))
            y = self._at(self.y, function.mul(example, sums.y.examples))
            with function.loop(0, self.sliding.out[0], plan.rows) as start:
                self._copy_block(x, start)
                self._sum_block(self._at(y, function.mul(start, sums.y.spatial[0])), self._rows_of(start))
        self._write_weights()

    def _rows_of(self, start: Index) -> Index:
        """Results along the first axis in the block that starts there: the last may have fewer."""
        total, most = self.sliding.out[0], self.plan.rows
        if total % most == 0:
            return most
        smaller = self.function.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        return self.function.call("i64", smaller, ("i64", self.function.sub(total, start)), ("i64", most))

    # --- the copy ---------------------------------------------------------------------------------------------------
    def _copy_block(self, x: str, start: Index) -> None:
        function, plan, sums = self.function, self.plan, self.sums
        with function.loop(0, sums.groups) as group:
            source = self._at(x, function.mul(group, sums.ins * sums.x.channels))
            target = self._at(self.copy, function.mul(group, plan.group_pitch))
            if len(self.sliding.size) == 1 and plan.rows < self.sliding.out[0]:
                self._copy_part_of_row(source, start, target)
            else:
                self._copy_rows(source, start, target)

    def _copy_rows(self, x: str, start: Index, target: str) -> None:
        function, plan, sliding = self.function, self.plan, self.sliding
        span, pitches, strides = plan.span, plan.pitches, self.sums.x.spatial
        low, size = sliding.pad[-1][0], sliding.size[-1]
        begin, end = max(0, low), min(span[-1], size + low)
        is_part = plan.rows < sliding.out[0]
        if end <= begin:
            return
        with ExitStack() as stack:
            source_offset: Index = 0
            row_offset: Index = 0
            inside: str | None = None
            for axis in range(len(span) - 1):
                index = stack.enter_context(function.loop(0, span[axis]))
                moved = function.add(index, function.mul(start, sliding.stride[0])) if axis == 0 else index
                position = function.sub(moved, sliding.pad[axis][0])
                source_offset = function.add(source_offset, function.mul(position, strides[axis]))
                row_offset = function.add(row_offset, function.mul(index, pitches[axis]))
                if sliding.pad[axis][0] or span[axis] > sliding.size[axis] or (is_part and axis == 0):
                    on_axis = function.value(f"icmp ult i64 {position}, {sliding.size[axis]}")
                    inside = on_axis if inside is None else function.value(f"and i1 {inside}, {on_axis}")
            row = self._at(target, row_offset)

            def copy() -> None:
                source = self._at(self._at(x, source_offset), (begin - low) * strides[-1])
                transposed = self._at(row, begin * pitches[-1])
                both = (self.sums.x.channels, strides[-1])
                transpose_rows(function, self.lanes, source, both, transposed, pitches[-1], self.sums.ins, end - begin)

            if inside is None:
                copy()
                return
            with function.when(inside):
                copy()
            if is_part:
                with function.when(function.value(f"xor i1 {inside}, true")):
                    clear_row(function, self.lanes, row, span[-1] * pitches[-1])

    def _copy_part_of_row(self, x: str, start: Index, target: str) -> None:
        """Copy a part of a row that is too long to be copied at once; of data with one axis."""
        function, sums, one = self.function, self.sums, self.lanes.narrowed()
        first = function.sub(function.mul(start, self.sliding.stride[0]), self.sliding.pad[0][0])
        with function.loop(0, self.plan.span[0]) as index:
            position = function.add(first, index)
            inside = function.value(f"icmp ult i64 {position}, {self.sliding.size[0]}")
            safe = function.value(f"select i1 {inside}, i64 {position}, i64 0")
            with function.loop(0, sums.ins) as channel:
                source = function.offset((safe, sums.x.spatial[0]), (channel, sums.x.channels))
                value = one.select(inside, one.load(x, source), one.constant(0))
                one.store(value, target, function.add(function.mul(index, sums.ins), channel))

    # --- the sums ---------------------------------------------------------------------------------------------------
    def _offsets(self) -> list[int]:
        """The offset of each run in the copy, from the position of a result."""
        return [
            sum(k * d * pitch for k, d, pitch in zip(place, self.sliding.dilation, self.plan.pitches, strict=True))
            for place in product(*map(range, self.plan.runs))
        ]

    def _sum_block(self, y: str, rows: Index) -> None:
        function, plan, sums = self.function, self.plan, self.sums
        offsets = self._offsets()
        width = plan.tile.vectors * plan.lanes
        per_tile = plan.tile.outs * len(offsets) * plan.run_pitch
        with ExitStack() as stack:
            group = stack.enter_context(function.loop(0, sums.groups))
            tile = stack.enter_context(function.loop(0, plan.tiles))
            out = self._first_output(tile)
            channel = function.add(function.mul(group, sums.outs), out)
            own = self._at(y, function.mul(channel, sums.y.channels))
            memory = self._at(self.memory, function.mul(function.add(function.mul(group, plan.tiles), tile), per_tile))
            base = self._at(self.copy, function.mul(group, plan.group_pitch))
            with self._each_run(offsets) as (run, offset):
                base, memory = self._at(base, offset), self._at(memory, function.mul(run, plan.run_pitch))
                with function.loop(0, plan.run_pitch, width) as lane:
                    self._sum_tile(
                        own, self._at(base, lane), self._at(memory, lane), len(offsets) * plan.run_pitch, rows
                    )

    def _first_output(self, tile: Index) -> Index:
        """The last tile begins earlier where outputs are no multiple of a tile; it has sums of its own."""
        function, plan, outs = self.function, self.plan, self.sums.outs
        start = function.mul(tile, plan.tile.outs)
        if outs % plan.tile.outs == 0 or isinstance(start, int):
            return start
        smaller = function.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        return function.call("i64", smaller, ("i64", start), ("i64", outs - plan.tile.outs))

    @contextmanager
    def _each_run(self, offsets: list[int]) -> Iterator[tuple[Index, Index]]:
        function = self.function
        if len(offsets) == 1:
            yield 0, offsets[0]
            return
        numbers = ", ".join(f"i64 {offset}" for offset in offsets)
        table = function.module.constant(f"[{len(offsets)} x i64]", f"[{numbers}]")
        with function.loop(0, len(offsets)) as run:
            yield run, function.load("i64", function.element(table, run, "i64"))

    def _sum_tile(self, y: str, base: str, memory: str, pitch: int, rows: Index) -> None:
        """Sum one tile over the results of a block; `pitch` is the distance of sums of neighbouring outputs."""
        function, lanes, tile = self.function, self.lanes, self.plan.tile
        one, zero = lanes.narrowed(), lanes.constant(0)
        slots = [[function.slot(lanes.type, zero) for _ in range(tile.vectors)] for _ in range(tile.outs)]
        counts: Sequence[Index] = (rows, *self.sliding.out[1:])
        with ExitStack() as stack:
            for axis, count in enumerate(counts):
                index = stack.enter_context(function.loop(0, count, at_least_once=True))
                y = self._at(y, function.mul(index, self.sums.y.spatial[axis]))
                base = self._at(base, function.mul(index, self.sliding.stride[axis] * self.plan.pitches[axis]))
            source_vectors = [lanes.load(base, vector * lanes.width) for vector in range(tile.vectors)]
            for out, own in enumerate(slots):
                factor = lanes.splat(one.load(y, out * self.sums.y.channels))
                for slot, vector in zip(own, source_vectors, strict=True):
                    value = lanes.mul_add(factor, vector, function.load(lanes.type, slot))
                    function.store(lanes.type, value, slot)
        for out, own in enumerate(slots):
            for number, slot in enumerate(own):
                place = out * pitch + number * lanes.width
                total = lanes.add(lanes.load(memory, place), function.load(lanes.type, slot))
                lanes.store(total, memory, place)

    # --- the weights ------------------------------------------------------------------------------------------------
    def _write_weights(self) -> None:
        function, plan, sums = self.function, self.plan, self.sums
        one = self.lanes.narrowed()
        per_out = prod(plan.runs) * plan.run_pitch
        joined = self.sliding.kernel[-1] if plan.is_joined else 1
        with ExitStack() as stack:
            group = stack.enter_context(function.loop(0, sums.groups))
            tile = stack.enter_context(function.loop(0, plan.tiles))
            part = stack.enter_context(function.loop(0, plan.tile.outs))
            index = function.add(function.mul(group, plan.tiles), tile)
            index = function.add(function.mul(index, plan.tile.outs), part)
            memory = self._at(self.memory, function.mul(index, per_out))
            out = function.add(function.add(function.mul(group, sums.outs), self._first_output(tile)), part)
            weights = self._at(self.weights, function.mul(out, sums.weights.examples))
            for axis, count in enumerate(plan.runs):
                place = stack.enter_context(function.loop(0, count))
                memory = self._at(memory, function.mul(place, prod(plan.runs[axis + 1 :]) * plan.run_pitch))
                weights = self._at(weights, function.mul(place, sums.weights.spatial[axis]))
            along = stack.enter_context(function.loop(0, joined))
            channel = stack.enter_context(function.loop(0, sums.ins))
            number = one.load(memory, function.add(function.mul(along, sums.ins), channel))
            target = function.offset((along, sums.weights.spatial[-1]), (channel, sums.weights.channels))
            one.store(number, weights, target)
