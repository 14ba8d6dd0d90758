"""A correlation as a kernel.

    for blocks of examples and rows, for groups:  copy the block with its zeros
        for tiles of channels, for combinations of courses, for lines of results:
            for tiles along the line:  sums in registers over channels and taps
            the rows of the line to where they belong

Where numbers of channels or of results are no multiples of a tile, the last tile begins earlier and computes some results
again: nothing is masked, and there is one tile in the text. Combinations of courses share it too; a table has their taps.
Along axes that a plan skips, each line, or each place in it, has a range of taps of its own: those inside the source.

What is to be done to results on their way out (a bias, an activation) belongs where they are stored: `_store` where lines
are direct, `_write_row` where they are not.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import product

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.kernels.convolution.planes import clear, fill
from pullback.backends.native.kernels.convolution.plans import Plan
from pullback.backends.native.kernels.convolution.row_loops import copy_row, overlapping, transpose_rows
from pullback.backends.native.kernels.convolution.sliding_window import Course
from pullback.dataclass import dataclass

#: Taps of the last axis up to so many are written one after the other; more are looked up in a table.
_UNROLLED_TAPS = 4


def write_correlation(function: Function, plan: Plan, weights: str, source: str, target: str, scratch: str) -> None:
    """The body of a kernel."""
    _Writer(function, plan, weights, source, target, scratch).write()


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
        self.table = _Table.of(plan)

    def _at(self, pointer: str, index: Index) -> str:
        return self.function.element(pointer, index, self.element)

    def _spread(self, axis: int) -> int:
        """Distance in the target of neighbouring results along an axis."""
        return self.axes[axis].spread * self.correlation.target.along[axis]

    # --- the whole --------------------------------------------------------------------------------------------------
    def write(self) -> None:
        """Write the loops over blocks, groups, channels and lines."""
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
            target = self._at(target, function.offset(*((start, self._spread(k)) for k, start in enumerate(starts))))
            if plan.planes is None:
                base = self._at(source, function.offset(*zip(starts, correlation.source.along, strict=True)))
            else:
                fill(function, self.lanes, correlation.source, plan.planes, source, starts, self.copy)
                base = self.copy
            out = stack.enter_context(overlapping(function, correlation.outs, plan.tile.outs))
            weights = self._at(weights, function.mul(out, correlation.weights.outs))
            target = self._at(target, function.mul(out, correlation.target.channels))
            taps = stack.enter_context(self.table.classes(function))
            self._write_lines(base, weights, self._at(target, taps.target), taps, starts)

    def _write_lines(self, base: str, weights: str, target: str, taps: "_Class", starts: Sequence[Index]) -> None:
        plan, function = self.plan, self.function
        with ExitStack() as stack:
            places: dict[int, Index] = {}
            for axis in plan.apart:
                places[axis] = index = stack.enter_context(function.loop(0, plan.block[axis]))
                base = self._at(base, function.mul(index, plan.pitches[axis]))
                target = self._at(target, function.mul(index, self._spread(axis)))
            ranges = {axis: self._met(axis, function.add(starts[axis], index)) for axis, index in places.items()}
            with self._along_line(ranges) as place:
                sums = self._sum(self._at(base, place), weights, taps, ranges)
                if plan.is_direct:
                    self._store(sums, self._at(target, place), self.correlation.target.channels)
                else:
                    self._store(sums, self._at(self.lines, place), plan.line_pitch)
            if not plan.is_direct:
                self._write_rows(target, taps, starts, places)

    def _met(self, axis: int, result: Index) -> tuple[Index, Index]:
        """Begin and end of the taps of an axis, in order of their offsets, that are inside the source."""
        function, taps = self.function, self.axes[axis].courses[0].taps
        if axis not in self.plan.skips:
            return 0, 0
        first = function.add(result, min(tap.offset for tap in taps))
        larger = function.module.declare("llvm.smax.i64", "i64", "i64", "i64")
        smaller = function.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        begin = function.call("i64", larger, ("i64", 0), ("i64", function.sub(0, first)))
        rest = function.sub(self.axes[axis].size, first)
        return begin, function.call("i64", smaller, ("i64", len(taps)), ("i64", rest))

    @contextmanager
    def _along_line(self, ranges: dict[int, tuple[Index, Index]]) -> Iterator[Index]:
        plan, function, last = self.plan, self.function, len(self.axes) - 1
        if plan.is_by_places:
            # The results of a tile beyond the examples of a place are computed again at the next.
            with function.loop(0, plan.block[last]) as index, function.loop(0, plan.block[0], plan.span) as example:
                ranges[last] = self._met(last, index)
                yield function.add(function.mul(index, plan.pitches[last]), example)
        elif plan.is_bounded and plan.length > plan.span:
            with overlapping(function, plan.length, plan.span) as place:
                yield place
        else:
            with function.loop(0, plan.length, plan.span) as place:
                yield place

    def _write_rows(self, target: str, taps: "_Class", starts: Sequence[Index], places: dict[int, Index]) -> None:
        """Copy results from a line to the target, without the elements between rows."""
        plan, function = self.plan, self.function
        last = len(self.axes) - 1
        with ExitStack() as stack:
            out = stack.enter_context(function.loop(0, plan.tile.outs))
            line = self._at(self.lines, function.mul(out, plan.line_pitch))
            target = self._at(target, function.mul(out, self.correlation.target.channels))
            for axis in plan.joined:
                if axis == last or (axis == 0 and plan.order[-1] == 0):
                    continue
                places[axis] = index = stack.enter_context(function.loop(0, plan.block[axis]))
                line = self._at(line, function.mul(index, plan.pitches[axis]))
                target = self._at(target, function.mul(index, self._spread(axis)))
            for axis, index in places.items():
                if axis in taps.counts and axis != last:
                    place = function.add(starts[axis], index)
                    stack.enter_context(function.when(function.value(f"icmp slt i64 {place}, {taps.counts[axis]}")))
            count = min(course.count for course in self.axes[last].courses)
            self._write_row(line, target, count)
            if last in taps.counts:  # one more in some courses
                more = function.value(f"icmp sgt i64 {taps.counts[last]}, {count}")
                with function.when(more):
                    line = self._at(line, count * plan.pitches[last])
                    self._write_row(line, self._at(target, count * self._spread(last)), 1)

    def _write_row(self, line: str, target: str, count: int) -> None:
        """Copy a row of results, of one example or of all that lie side by side."""
        plan, function = self.plan, self.function
        last = len(self.axes) - 1
        pitch, spread = plan.pitches[last], self._spread(last)
        if count == 0:
            return
        if plan.order[-1] != 0:
            copy_row(function, self.lanes, line, 1, target, spread, count)
        elif spread == 1:
            transpose_rows(function, self.lanes, line, (pitch, 1), target, self._spread(0), count, plan.block[0])
        else:
            with function.loop(0, plan.block[0]) as example:
                own = self._at(target, function.mul(example, self._spread(0)))
                copy_row(function, self.lanes, self._at(line, example), pitch, own, spread, count)

    # --- a tile -----------------------------------------------------------------------------------------------------
    def _sum(self, base: str, weights: str, taps: "_Class", ranges: dict[int, tuple[Index, Index]]) -> list[list[str]]:
        """Sums over channels and taps of one tile, in slots."""
        function, correlation, tile = self.function, self.correlation, self.plan.tile
        zero = self.lanes.constant(0)
        sums = [[function.slot(self.lanes.type, zero) for _ in range(tile.vectors)] for _ in range(tile.outs)]
        together = (
            1 if self.table.taps > 1 or self.plan.skips else next(k for k in (4, 2, 1) if correlation.ins % k == 0)
        )
        pitch = correlation.source.channels if self.plan.planes is None else self.plan.planes.channel_pitch
        with function.loop(0, correlation.ins, together) as channel:
            here = self._at(base, function.mul(channel, pitch))
            own = self._at(weights, function.mul(channel, correlation.weights.ins))
            with self._each_tap(taps, ranges) as (source_base, weights_base):
                unrolled = [
                    (a + k * pitch, b + k * correlation.weights.ins)
                    for k in range(together)
                    for a, b in self.table.unrolled
                ]
                self._accumulate(sums, self._at(here, source_base), self._at(own, weights_base), unrolled)
        return sums

    @contextmanager
    def _each_tap(self, taps: "_Class", ranges: dict[int, tuple[Index, Index]]) -> Iterator[tuple[Index, Index]]:
        """Go through the taps that are not left out, with the offset of each in the source and in the weights."""
        function, plan = self.function, self.plan
        with ExitStack() as stack:
            source_base: Index = 0
            weights_base: Index = 0
            for axis in plan.skips:
                number = stack.enter_context(function.loop(*ranges[axis]))
                offsets = _offsets(plan, axis, _ascending(self.axes[axis].courses[0]))
                (source, weight), (next_source, next_weight) = offsets[0], offsets[min(1, len(offsets) - 1)]
                source_base = function.add(source_base, function.mul(number, next_source - source))
                weights_base = function.add(weights_base, function.mul(number, next_weight - weight))
                source_base, weights_base = function.add(source_base, source), function.add(weights_base, weight)
            source_offset, weight_offset = stack.enter_context(taps.each(function))
            yield function.add(source_base, source_offset), function.add(weights_base, weight_offset)

    def _accumulate(self, sums: list[list[str]], source: str, weights: str, taps: Sequence[tuple[int, int]]) -> None:
        function, lanes, tile = self.function, self.lanes, self.plan.tile
        one = lanes.narrowed()
        values = [[function.load(lanes.type, slot) for slot in row] for row in sums]
        for source_base, weights_base in taps:
            source_vectors = [
                lanes.load(source, source_base + vector * lanes.width, active=self._active(vector))
                for vector in range(tile.vectors)
            ]
            for out in range(tile.outs):
                weight = lanes.splat(one.load(weights, weights_base + out * self.correlation.weights.outs))
                values[out] = [
                    lanes.mul_add(weight, vector, value)
                    for vector, value in zip(source_vectors, values[out], strict=True)
                ]
        for slots, row in zip(sums, values, strict=True):
            for slot, value in zip(slots, row, strict=True):
                function.store(lanes.type, value, slot)

    def _active(self, vector: int) -> int | None:
        """The number of lanes of a vector that are in a line shorter than the tile; None for all of them."""
        plan = self.plan
        if not plan.is_bounded or plan.length >= plan.span:
            return None
        return min(self.lanes.width, plan.length - vector * self.lanes.width)

    def _store(self, sums: list[list[str]], target: str, pitch: int) -> None:
        for out, slots in enumerate(sums):
            for vector, slot in enumerate(slots):
                value = self.function.load(self.lanes.type, slot)
                self.lanes.store(value, target, out * pitch + vector * self.lanes.width, active=self._active(vector))


@dataclass(frozen=True, slots=True)
class _Class:
    """One combination of courses: where its taps are in the table, its first result, its counts where they differ."""

    begin: Index
    end: Index
    target: Index
    counts: dict[int, Index]
    table: str | None
    only: tuple[int, int]

    @contextmanager
    def each(self, function: Function) -> Iterator[tuple[Index, Index]]:
        """Go through the taps in the table, with the offset of each in the source and in the weights."""
        if self.table is None:
            yield self.only
            return
        with function.loop(self.begin, self.end) as tap:
            entry = function.element(self.table, function.mul(tap, 2), "i64")
            yield function.load("i64", entry), function.load("i64", function.element(entry, 1, "i64"))


@dataclass(frozen=True, slots=True)
class _Table:
    """Offsets of taps in the source and in the weights: those written out, at each of those in a table."""

    unrolled: list[tuple[int, int]]
    _classes: list[list[tuple[int, int]]]
    _targets: list[int]
    _counts: dict[int, list[int]]

    @property
    def taps(self) -> int:
        """The most taps of one channel that are in the table or written out."""
        return len(self.unrolled) * max(map(len, self._classes))

    @classmethod
    def of(cls, plan: Plan) -> "_Table":
        """The table of all taps of a plan."""
        axes, target = plan.correlation.axes, plan.correlation.target.along
        combinations = list(product(*(axis.courses for axis in axes)))
        alone = len(combinations) == 1 and len(combinations[0][-1].taps) <= _UNROLLED_TAPS and not plan.is_by_places
        unrolled = _offsets(plan, len(axes) - 1, combinations[0][-1]) if alone else [(0, 0)]
        classes = []
        for courses in combinations:
            along = [
                [(0, 0)] if number in plan.skips else _offsets(plan, number, course)
                for number, course in enumerate(courses)
            ]
            if alone:
                along.pop()
            classes.append([(sum(a for a, _ in taps), sum(b for _, b in taps)) for taps in product(*along)])
        targets = [
            sum(course.first * stride for course, stride in zip(courses, target, strict=True))
            for courses in combinations
        ]
        counts = {
            number: [courses[number].count for courses in combinations]
            for number, axis in enumerate(axes)
            if len({course.count for course in axis.courses}) > 1
        }
        return cls(unrolled, classes, targets, counts)

    @contextmanager
    def classes(self, function: Function) -> Iterator[_Class]:
        """Go through the combinations of courses."""
        flat = [entry for taps in self._classes for entry in taps]
        table = _constants(function, [number for entry in flat for number in entry]) if len(flat) > 1 else None
        if len(self._classes) == 1:
            yield _Class(0, len(flat), self._targets[0], {}, table, flat[0])
            return
        rows: list[int] = []
        begin = 0
        for position, taps in enumerate(self._classes):
            rows += [begin, begin + len(taps), self._targets[position]]
            rows += [counts[position] for counts in self._counts.values()]
            begin += len(taps)
        width = 3 + len(self._counts)
        places = _constants(function, rows)
        table = table or _constants(function, [number for entry in flat for number in entry])
        with function.loop(0, len(self._classes)) as class_:
            row = function.element(places, function.mul(class_, width), "i64")
            fields = [function.load("i64", function.element(row, field, "i64")) for field in range(width)]
            yield _Class(
                fields[0], fields[1], fields[2], dict(zip(self._counts, fields[3:], strict=True)), table, (0, 0)
            )


def _offsets(plan: Plan, number: int, course: Course) -> list[tuple[int, int]]:
    """Offsets in the source and in the weights of the taps of a course along one axis."""
    planes, stride = plan.planes, plan.correlation.source.along[number]
    return [
        (
            stride * tap.offset if planes is None else planes.place(number, tap),
            plan.correlation.weights.taps[number] * tap.index,
        )
        for tap in course.taps
    ]


def _ascending(course: Course) -> Course:
    """The course with its taps in ascending order of their offsets."""
    return replace(course, taps=tuple(sorted(course.taps, key=lambda tap: tap.offset)))


def _constants(function: Function, numbers: Sequence[int]) -> str:
    """A pointer to numbers known now."""
    text = ", ".join(f"i64 {number}" for number in numbers)
    return function.module.constant(f"[{len(numbers)} x i64]", f"[{text}]")
