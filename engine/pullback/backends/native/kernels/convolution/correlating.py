"""A correlation as a kernel.

    for blocks of examples and rows, for groups:  copy the block with its zeros
        for tiles of channels:  for lines of results:
            for tiles along the line:  sums in registers over channels and taps
            the rows of the lines to where they belong

Where numbers of channels or of results are no multiples of a tile, the last tile begins earlier and computes some results
again: nothing is masked, and there is one tile in the text.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product

from pullback.backends.native.kernels.convolution.axes import Axis
from pullback.backends.native.kernels.convolution.planes import clear, fill
from pullback.backends.native.kernels.convolution.plans import Plan
from pullback.backends.native.kernels.convolution.rows import clear_row, copy_row, overlapping
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import Lanes, memory_type

#: Taps of the last axis up to so many are written one after the other; more are looked up in a table.
_UNROLLED_TAPS = 4


def write_correlation(function: Function, plan: Plan, weights: str, source: str, target: str, scratch: str) -> None:
    """The body of a kernel."""
    writer = _Writer(function, plan, weights, source, target, scratch)
    if plan.correlation.is_empty:
        writer.write_zeros()
    else:
        writer.write()


class _Writer:
    def __init__(self, function: Function, plan: Plan, weights: str, source: str, target: str, scratch: str) -> None:
        self.function = function
        self.plan = plan
        self.correlation = plan.correlation
        self.axes = plan.correlation.axes
        self.lanes = Lanes(function, plan.correlation.dtype, plan.lanes)
        self.element = memory_type(plan.correlation.dtype)
        self.weights = weights
        self.source = source
        self.target = target
        self.copy = scratch
        self.lines = self._at(scratch, plan.copied)
        self.taps = _Taps.of(plan)

    def _at(self, pointer: str, index: Index) -> str:
        return self.function.element(pointer, index, self.element)

    # --- the whole --------------------------------------------------------------------------------------------------
    def write(self) -> None:
        """Blocks, groups, channels, lines."""
        plan, correlation, function = self.plan, self.correlation, self.function
        if plan.planes is not None and plan.planes.has_zeros:
            clear(function, self.lanes, plan.planes, self.copy)
        with ExitStack() as stack:
            starts = [
                stack.enter_context(overlapping(function, axis.count, count))
                for axis, count in zip(self.axes, plan.block, strict=True)
            ]
            group = stack.enter_context(function.loop(0, correlation.groups))
            source = self._at(self.source, function.mul(group, correlation.ins * correlation.source.channels))
            weights = self._at(self.weights, function.mul(group, correlation.weights.groups))
            target = self._at(self.target, function.mul(group, correlation.outs * correlation.target.channels))
            target = self._at(target, function.offset(*zip(starts, self._spreads(), strict=True)))
            target = self._at(target, sum(axis.first * stride for axis, stride in self._along_target()))
            if plan.planes is None:
                base = self._at(source, function.offset(*zip(starts, correlation.source.along, strict=True)))
            else:
                fill(function, self.lanes, correlation, plan.planes, source, starts, self.copy)
                base = self.copy
            out = stack.enter_context(overlapping(function, correlation.outs, plan.tile.outs))
            weights = self._at(weights, function.mul(out, correlation.weights.outs))
            target = self._at(target, function.mul(out, correlation.target.channels))
            self._write_lines(base, weights, target)

    def _along_target(self) -> Iterator[tuple[Axis, int]]:
        return zip(self.axes, self.correlation.target.along, strict=True)

    def _spreads(self) -> list[int]:
        """Distances in the target of neighbouring results along each axis."""
        return [axis.spread * stride for axis, stride in self._along_target()]

    def _write_lines(self, base: str, weights: str, target: str) -> None:
        plan, function = self.plan, self.function
        apart = len(self.axes) - plan.flat
        with ExitStack() as stack:
            indices = [stack.enter_context(function.loop(0, count)) for count in plan.block[:apart]]
            base = self._at(base, function.offset(*zip(indices, plan.pitches[:apart], strict=True)))
            target = self._at(target, function.offset(*zip(indices, self._spreads()[:apart], strict=True)))
            with self._along_line() as place:
                sums = self._sum(self._at(base, place), weights)
                if plan.is_direct:
                    self._store(sums, self._at(target, place), self.correlation.target.channels)
                else:
                    self._store(sums, self._at(self.lines, place), plan.line_pitch)
            if not plan.is_direct:
                self._write_rows(target)

    @contextmanager
    def _along_line(self) -> Iterator[Index]:
        plan, function = self.plan, self.function
        if plan.is_bounded and plan.length > plan.span:
            with overlapping(function, plan.length, plan.span) as place:
                yield place
        else:
            with function.loop(0, plan.length, plan.span) as place:
                yield place

    def _write_rows(self, target: str) -> None:
        """From lines to where results belong, leaving out what is between rows."""
        plan, function = self.plan, self.function
        flat = range(len(self.axes) - plan.flat, len(self.axes) - 1)
        spreads = self._spreads()
        with ExitStack() as stack:
            out = stack.enter_context(function.loop(0, plan.tile.outs))
            indices = [stack.enter_context(function.loop(0, plan.block[axis])) for axis in flat]
            line = self._at(self.lines, function.mul(out, plan.line_pitch))
            line = self._at(line, function.offset(*zip(indices, (plan.pitches[axis] for axis in flat), strict=True)))
            row = self._at(target, function.mul(out, self.correlation.target.channels))
            row = self._at(row, function.offset(*zip(indices, (spreads[axis] for axis in flat), strict=True)))
            copy_row(function, self.lanes, line, 1, row, spreads[-1], plan.block[-1])

    def write_zeros(self) -> None:
        """The target where nothing is summed."""
        function, correlation = self.function, self.correlation
        target = self._at(self.target, sum(axis.first * stride for axis, stride in self._along_target()))
        spreads = self._spreads()
        with ExitStack() as stack:
            channel = stack.enter_context(function.loop(0, correlation.groups * correlation.outs))
            indices = [stack.enter_context(function.loop(0, axis.count)) for axis in self.axes[:-1]]
            row = self._at(target, function.mul(channel, correlation.target.channels))
            row = self._at(row, function.offset(*zip(indices, spreads[:-1], strict=True)))
            clear_row(function, self.lanes, row, self.axes[-1].count, spreads[-1])

    # --- a tile -----------------------------------------------------------------------------------------------------
    def _sum(self, base: str, weights: str) -> list[list[str]]:
        """Sums over channels and taps of one tile, in slots."""
        function, correlation, tile = self.function, self.correlation, self.plan.tile
        zero = self.lanes.constant(0)
        sums = [[function.slot(self.lanes.type, zero) for _ in range(tile.vectors)] for _ in range(tile.outs)]
        together = 1 if self.taps.count > 1 else next(k for k in (4, 2, 1) if correlation.ins % k == 0)
        pitch = correlation.source.channels if self.plan.planes is None else self.plan.planes.channel_pitch
        with function.loop(0, correlation.ins, together) as channel:
            here = self._at(base, function.mul(channel, pitch))
            own = self._at(weights, function.mul(channel, correlation.weights.ins))
            with self.taps.rows(function) as (of_source, of_weights):
                taps = [
                    (a + k * pitch, b + k * correlation.weights.ins)
                    for k in range(together)
                    for a, b in self.taps.unrolled
                ]
                self._accumulate(sums, self._at(here, of_source), self._at(own, of_weights), taps)
        return sums

    def _accumulate(self, sums: list[list[str]], source: str, weights: str, taps: Sequence[tuple[int, int]]) -> None:
        function, lanes, tile = self.function, self.lanes, self.plan.tile
        one = lanes.narrowed()
        values = [[function.load(lanes.type, slot) for slot in row] for row in sums]
        for of_source, of_weights in taps:
            met = [
                lanes.load(source, of_source + vector * lanes.width, active=self._active(vector))
                for vector in range(tile.vectors)
            ]
            for out in range(tile.outs):
                weight = lanes.splat(one.load(weights, of_weights + out * self.correlation.weights.outs))
                values[out] = [
                    lanes.mul_add(weight, vector, value) for vector, value in zip(met, values[out], strict=True)
                ]
        for slots, row in zip(sums, values, strict=True):
            for slot, value in zip(slots, row, strict=True):
                function.store(lanes.type, value, slot)

    def _active(self, vector: int) -> int | None:
        """How many lanes of a vector are in a line that is shorter than the tile; all are in others."""
        plan = self.plan
        if not plan.is_bounded or plan.length >= plan.span:
            return None
        return min(self.lanes.width, plan.length - vector * self.lanes.width)

    def _store(self, sums: list[list[str]], target: str, pitch: int) -> None:
        for out, slots in enumerate(sums):
            for vector, slot in enumerate(slots):
                value = self.function.load(self.lanes.type, slot)
                self.lanes.store(value, target, out * pitch + vector * self.lanes.width, active=self._active(vector))


class _Taps:
    """Offsets of taps in the source and in the weights: those written out, at each of those in a table."""

    def __init__(self, unrolled: list[tuple[int, int]], table: list[tuple[int, int]]) -> None:
        self.unrolled = unrolled
        self.table = table
        self.count = len(unrolled) * len(table)

    @classmethod
    def of(cls, plan: Plan) -> "_Taps":
        """Of all taps of a plan."""
        correlation = plan.correlation

        def offsets(number: int) -> list[tuple[int, int]]:
            planes, strides = plan.planes, correlation.source.along
            return [
                (
                    strides[number] * tap.offset if planes is None else planes.place(number, tap),
                    correlation.weights.taps[number] * tap.index,
                )
                for tap in correlation.axes[number].taps
            ]

        if correlation.is_empty:
            return cls([], [])
        along = [offsets(number) for number in range(len(correlation.axes))]
        unrolled = along.pop() if len(along[-1]) <= _UNROLLED_TAPS else [(0, 0)]
        table = [(sum(a for a, _ in taps), sum(b for _, b in taps)) for taps in product(*along)]
        return cls(unrolled, table)

    @contextmanager
    def rows(self, function: Function) -> Iterator[tuple[Index, Index]]:
        """For each entry of the table."""
        if len(self.table) == 1:
            yield self.table[0]
            return
        numbers = ", ".join(f"i64 {number}" for entry in self.table for number in entry)
        table = function.module.constant(f"[{2 * len(self.table)} x i64]", f"[{numbers}]")
        with function.loop(0, len(self.table)) as row:
            entry = function.element(table, function.mul(row, 2), "i64")
            yield function.load("i64", entry), function.load("i64", function.element(entry, 1, "i64"))
