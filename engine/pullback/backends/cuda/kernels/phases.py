"""The text of a kernel's phases: what a thread does until all threads of its block are there.

    work      a thread computes its points, stores what is stored, and puts what it accumulated into shared memory
    gather    some threads add what others found, until one value of each result is left

A phase is a function of the pointers of the kernel, the shared memory, the thread and the block.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import Any

import numpy as np

from pullback.backends.cuda.kernels.grids import Grid, is_aligned, is_read_at_once, kept_by_rows
from pullback.backends.cuda.kernels.passes import needed_in
from pullback.backends.llvm.accumulators import Combiner
from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.llvm.elementary import scalars
from pullback.backends.nests.nest import Constant, Nest, NestRead, NestWrite, Reduction
from pullback.dataclass import dataclass
from pullback.rules.activations import identity

#: Terms that a thread adds in one phase.
GATHERED = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Memory that an operand begins in: the parameter that points to it, and the bytes from there."""

    parameter: int
    offset: int


@dataclass(frozen=True, slots=True)
class Result:
    """The place where a reduction of a pass is stored: its own, or a number for each split or block."""

    place: Place
    is_partial: bool


@dataclass(slots=True)
class _Values:
    """Values at one place of the text; what is known around it is known there."""

    known: dict[tuple[int, int | None], str] = field(default_factory=dict)
    coordinates: dict[int, Index] = field(default_factory=dict)
    unit: Index = 0
    """The unit of the line that a thread walks along."""

    def inside(self, coordinates: dict[int, Index], unit: Index = 0) -> "_Values":
        """Knowledge at a place further in."""
        return _Values(dict(self.known), self.coordinates | coordinates, unit)


def new_phase(module: Module, name: str, pieces: int) -> Function:
    """The function of a phase of a kernel with so many pointers."""
    index = module.index_type
    parameters = [*(("ptr", f"p{number}") for number in range(pieces)), ("ptr", "shared")]
    return module.function(name, [*parameters, (index, "thread"), (index, "block")], inlined=True)


def write_parts(module: Module, name: str, writers: Sequence["PhaseWriter"], pieces: int) -> str:
    """The phase in which each of several passes that reduce nothing has blocks of its own; gives its name."""
    function, first = new_phase(module, name, pieces), 0
    for writer in writers:
        block, blocks = function.sub("%block", first), writer.grid.blocks
        with function.when(function.value(f"icmp ult {function.index_type} {block}, {blocks}")):
            writer.work_in(function, block)
        first += blocks
    return function.name


class PhaseWriter:
    """The phases of one pass."""

    def __init__(
        self, module: Module, name: str, nest: Nest, grid: Grid, places: Sequence[Place], results: Sequence[Result]
    ) -> None:
        self.module = module
        self.name = name
        self.nest = nest
        self.grid = grid
        self.places = places
        self.results = results
        self.axes = nest.axes_of_values()
        self.parameters = 1 + max(
            [place.parameter for place in places] + [result.place.parameter for result in results], default=-1
        )
        self.is_total = [len(reduction.axes) > len(grid.reduced) for reduction in nest.reductions]
        self.stage_of = nest.stages()
        self.stages = 1 + max((self.stage_of[value] for value in nest.results), default=0)
        self.regions, self.shared_bytes = self._shared()
        self.kept_reads, self.totals = self._kept_in_shared()
        self.names: list[str] = []
        self._begin(0)

    # --- functions --------------------------------------------------------------------------------------------------
    def write(self) -> list[str]:
        """Write all phases; gives their names."""
        for stage in range(self.stages):
            self._begin(stage)
            self._phase("work", self._work)
            left = [count if k in self.active else 1 for k, count in enumerate(self._gathered_counts())]
            while any(count > 1 for count in left):
                following = [max(1, count // GATHERED) for count in left]
                self._phase("gather", lambda before=left, after=following: self._gather(before, after))  # type: ignore[misc]
                left = following
        return self.names

    def _begin(self, stage: int) -> None:
        """Begin with what waits for so many reductions of the nest, one behind the other."""
        self.stage = stage
        self.active = [k for k, one in enumerate(self.nest.reductions) if self.stage_of[one.value] == stage]
        self.needed = needed_in(self.nest, stage)

    def work_in(self, function: Function, block: Index) -> None:
        """Write the work of a pass that reduces nothing into a function, as that of the block of this number."""
        self.function = function
        self._place_thread(block)
        self._work()

    def _phase(self, kind: str, write: Callable[[], None]) -> None:
        self.function = new_phase(self.module, f"{self.name}_{kind}", self.parameters)
        self.names.append(self.function.name)
        self._place_thread("%block")
        write()

    def _place_thread(self, block: Index) -> None:
        function, grid = self.function, self.grid
        self.split, kept_block = self._divided(block, grid.kept_blocks, grid.splits)
        if grid.along in grid.kept:
            self.reduced_thread, self.kept_thread = self._divided("%thread", grid.kept_threads, grid.reduced_threads)
        else:
            self.kept_thread, self.reduced_thread = self._divided("%thread", grid.reduced_threads, grid.kept_threads)
        per_block = grid.kept_threads * (1 if grid.reduced else grid.unroll)
        self.kept_unit = function.add(function.mul(kept_block, per_block), self.kept_thread)

    def _divided(self, index: Index, inner: int, outer: int) -> tuple[Index, Index]:
        if outer == 1:
            return 0, index if inner > 1 else 0
        return self.function.divide(index, inner)

    # --- work -------------------------------------------------------------------------------------------------------
    def _work(self) -> None:
        grid = self.grid
        self.cells = [
            [self._cell(self._combiner(reduction)) for _ in range(grid.lanes)] for reduction in self.nest.reductions
        ]
        if not grid.reduced:
            self._units(
                self.kept_unit, grid.kept_units, grid.kept_threads, self._kept_coordinates, _Values(), again=False
            )
            return
        with self._if_less(self.kept_unit, grid.kept_units, grid.kept_blocks * grid.kept_threads):
            outside = _Values(coordinates=self._kept_coordinates(self.kept_unit))
            for number, axes in enumerate(self.axes):
                if axes <= frozenset(grid.kept) and number in self.needed:
                    for lane in self._lanes_of(number, grid.kept_lanes):
                        self._value(number, lane, outside)
            self._store_rows(outside)
            first = self.function.mul(self.split, grid.chunk)
            stop: Index = grid.reduced_units
            if grid.splits > 1:
                behind = self.function.add(first, grid.chunk)
                stop = behind if grid.chunk * grid.splits == grid.reduced_units else self._smaller(behind, stop)
            start = self.function.add(first, self.reduced_thread)
            self._units(start, stop, grid.reduced_threads, self._reduced_coordinates, outside, again=True)
        self._put_away()

    def _units(
        self,
        start: Index,
        stop: Index,
        step: int,
        coordinates: Callable[[Index], dict[int, Index]],
        around: _Values,
        *,
        again: bool,
    ) -> None:
        """Bodies of units from `start` on, every `step`-th: `unroll` of them, or all before `stop`."""
        function, grid = self.function, self.grid

        def bodies(first: Index, count: int) -> None:
            units = [function.add(first, number * step) for number in range(count)]
            values = [around.inside(coordinates(unit), unit) for unit in units]
            if grid.rest:
                self._with_rest(units, values)
            else:
                self._bodies(values, grid.lanes)

        def several(first: Index) -> None:
            if grid.unroll == 1:
                bodies(first, 1)
                return
            last = function.add(first, (grid.unroll - 1) * step)
            fits = function.value(f"icmp slt {function.index_type} {last}, {stop}")
            with function.when(fits):
                bodies(first, grid.unroll)
            with (
                function.when(function.value(f"xor i1 {fits}, true")),
                function.loop(first, stop, step) as unit,
            ):
                bodies(unit, 1)

        if again:
            with function.loop(start, stop, step * grid.unroll) as first:
                several(first)
        elif grid.unroll > 1:
            several(start)
        else:
            with self._if_less(start, grid.kept_units, grid.kept_blocks * grid.kept_threads):
                bodies(start, 1)

    def _with_rest(self, units: Sequence[Index], values: Sequence[_Values]) -> None:
        """Units of a line that ends within one: that one element by element."""
        function, grid = self.function, self.grid
        size = self.nest.space[grid.along]
        whole = size // grid.lanes
        for unit, own in zip(units, values, strict=True):
            is_whole = function.value(f"icmp slt {function.index_type} {unit}, {whole}")
            with function.when(is_whole):
                self._bodies([own.inside({})], grid.lanes)
            with (
                function.when(function.value(f"xor i1 {is_whole}, true")),
                function.loop(whole * grid.lanes, size) as element,
            ):
                same = {key: value for key, value in own.known.items() if key[1] is None}
                self._bodies([_Values(same, own.coordinates | {grid.along: element})], 1)

    def _bodies(self, several: Sequence[_Values], lanes: int) -> None:
        """All that is computed at some units: what is read comes first, so that the reads wait together."""
        for values in several:
            for number in range(len(self.nest.reads)):
                for lane in self._lanes_of(number, lanes) if number in self.needed else ():
                    self._value(number, lane, values, lanes)
        for values in several:
            for lane in range(lanes):
                for number in sorted(self.needed):
                    self._value(number, lane, values, lanes)
                    if lane == lanes - 1:  # nothing is kept for longer than it is needed
                        self._store_all(number, values, lanes)
                for k in self.active:
                    self._accumulate(k, self.nest.reductions[k], lane, values)

    def _store_all(self, number: int, values: _Values, lanes: int) -> None:
        for write in self.nest.writes:
            if write.value == number and self.stage_of[number] == self.stage and not self._is_of_rows(write):
                self._store(write, values, lanes)

    def _is_of_rows(self, write: NestWrite) -> bool:
        """True for what is stored once for each row that is reduced, and not for each point."""
        return bool(self.grid.reduced) and not any(write.strides[axis] for axis in self.grid.reduced)

    def _store_rows(self, values: _Values) -> None:
        """Store the numbers of a row, by its first thread."""
        writes = [one for one in self.nest.writes if self.stage_of[one.value] == self.stage and self._is_of_rows(one)]
        if writes:
            with self._if_less(self.reduced_thread, 1, self.grid.reduced_threads):
                for write in writes:
                    self._store(write, values, self.grid.kept_lanes)

    def _accumulate(self, k: int, reduction: Reduction, lane: int, values: _Values) -> None:
        combiner = self._combiner(reduction)
        term = self._as(
            values.known[reduction.value, self._lane_of(reduction.value, lane)], reduction.value, combiner.lanes
        )
        cell = self.cells[k][lane]
        combiner.lanes.store(combiner.combine(combiner.lanes.load(cell), term), cell)

    def _store(self, write: NestWrite, values: _Values, lanes: int) -> None:
        own = Lanes(self.function, write.dtype, 1)
        found = [
            self._as(values.known[write.value, self._lane_of(write.value, lane)], write.value, own)
            for lane in range(lanes)
        ]
        pointer, offset = self._pointer(self.places[write.pointer]), self._offset(write, values)
        if lanes == 1 or not self._is_one_access(write, lanes):
            for lane, value in enumerate(found):
                own.store(value, pointer, self.function.add(offset, lane * write.strides[self.grid.along]))
            return
        memory = memory_type(write.dtype)
        if write.dtype.kind == "b":
            found = [self.function.value(f"zext i1 {value} to i8") for value in found]
        vector = "poison"
        for lane, value in enumerate(found):
            vector = self.function.value(f"insertelement <{lanes} x {memory}> {vector}, {memory} {value}, i32 {lane}")
        place = self.function.element(pointer, offset, memory)
        self.function.store(f"<{lanes} x {memory}>", vector, place, align=lanes * write.dtype.itemsize)

    # --- values -----------------------------------------------------------------------------------------------------
    def _lane_of(self, number: int, lane: int) -> int | None:
        """The lane under which a value is known: none if it is the same in all."""
        return lane if self.grid.along in self.axes[number] else None

    def _lanes_of(self, number: int, lanes: int) -> Iterator[int]:
        return iter(range(lanes if self.grid.along in self.axes[number] else 1))

    def _value(self, number: int, lane: int, values: _Values, lanes: int = 0) -> str:
        key = number, self._lane_of(number, lane)
        if key not in values.known:
            reads = self.nest.reads
            if number < len(reads):
                self._read(number, reads[number], values, lanes or self.grid.kept_lanes)
            else:
                values.known[key] = self._step(number, lane, values, lanes)
        return values.known[key]

    def _read(self, number: int, read: NestRead, values: _Values, lanes: int) -> None:
        """All lanes of what is read: from memory, or where the block keeps it."""
        if read.total is not None:
            self._read_total(number, read.total, values, lanes)
            return
        if number not in self.kept_reads:
            self._read_memory(number, read, values, lanes)
            return
        own, is_first = Lanes(self.function, read.dtype, 1), self.stage == self.kept_reads[number][1]
        if is_first:
            self._read_memory(number, read, values, lanes)
        for lane in self._lanes_of(number, lanes):
            key, (pointer, place) = (number, self._lane_of(number, lane)), self._kept_at(number, lane, values)
            if is_first:
                own.store(values.known[key], pointer, place)
            else:
                values.known[key] = own.load(pointer, place)

    def _kept_at(self, number: int, lane: int, values: _Values) -> tuple[str, Index]:
        """The place in shared memory where a thread keeps what it read."""
        function, grid = self.function, self.grid
        unit = function.add(function.mul(values.unit, grid.kept_threads), self.kept_thread)
        region = function.element("%shared", self.kept_reads[number][0], "i8")
        return region, function.add(function.mul(unit, grid.lanes), lane)

    def _read_total(self, number: int, k: int, values: _Values, lanes: int) -> None:
        """The result of a reduction of an earlier stage."""
        reduction = self.nest.reductions[k]
        own = self._combiner(reduction).lanes
        for lane in self._lanes_of(number, lanes):
            value = own.load(*self._total_at(k, lane))
            values.known[number, self._lane_of(number, lane)] = own.convert(value, own.as_dtype(reduction.dtype))

    def _total_at(self, k: int, lane: int) -> tuple[str, Index]:
        """The place in shared memory of the result of a reduction, which each block has of its rows."""
        region = self.function.element("%shared", self.totals[k], "i8")
        return region, self.function.add(self.kept_thread, lane * self.grid.kept_threads)

    def _read_memory(self, number: int, read: NestRead, values: _Values, lanes: int) -> None:
        own, function = Lanes(self.function, read.dtype, 1), self.function
        pointer, offset = self._pointer(self.places[read.pointer]), self._offset(read, values)
        if self.grid.along not in self.axes[number]:
            values.known[number, None] = own.load(pointer, self._further(offset, read, 0, values, lanes))
            return
        if lanes == 1 or not self._is_one_access(read, lanes):
            for lane in range(lanes):
                place = function.add(offset, lane * read.strides[self.grid.along])
                values.known[number, lane] = own.load(pointer, self._further(place, read, lane, values, lanes))
            return
        memory = memory_type(read.dtype)
        start = function.element(pointer, self._further(offset, read, 0, values, lanes), memory)
        vector = function.load(f"<{lanes} x {memory}>", start, align=lanes * read.dtype.itemsize)
        for lane in range(lanes):
            one = function.value(f"extractelement <{lanes} x {memory}> {vector}, i32 {lane}")
            if read.dtype.kind == "b":
                one = function.value(f"icmp ne i8 {one}, 0")
            values.known[number, lane] = one

    def _further(self, offset: Index, read: NestRead, lane: int, values: _Values, lanes: int) -> Index:
        """The offset of what is read by positions: further on by each."""
        for position in read.positions:
            found = self._value(position.value, lane, values, lanes)
            place = self._inside(found, self.nest.dtype_of(position.value), position.size)
            offset = self.function.add(offset, self.function.mul(place, position.stride))
        return offset

    def _inside(self, position: str, dtype: np.dtype[Any], size: int) -> Index:
        """A position counted from the start; of one out of bounds, which is found elsewhere (`cuda/bounds_checks.py`), the first."""
        function = self.function
        given, wide = Lanes(function, dtype, 1), Lanes(function, np.dtype("i8"), 1)

        def write() -> str:
            whole = given.convert(position, wide)
            below = wide.compare("<", whole, "0")
            counted = wide.select(below, function.value(f"add i64 {whole}, {size}"), whole)
            kept = wide.select(function.value(f"icmp ult i64 {counted}, {size}"), counted, "0")
            return kept if function.index_type == "i64" else wide.convert(kept, wide.as_dtype("i4"))

        return function.once(("position", position, size), write)

    def _is_one_access(self, operand: NestRead | NestWrite, lanes: int) -> bool:
        start = self.places[operand.pointer].offset
        if lanes != self.grid.lanes:
            return False
        if isinstance(operand, NestRead):
            return is_read_at_once(operand, self.axes, self.grid, start)
        return is_aligned(operand.strides, self.grid, start, operand.dtype.itemsize)

    def _step(self, number: int, lane: int, values: _Values, lanes: int) -> str:
        step = self.nest.steps[number - len(self.nest.reads)]
        operands = []
        for operand, dtype in zip(step.operands, step.operand_dtypes, strict=True):
            own = Lanes(self.function, dtype, 1)
            if isinstance(operand, Constant):
                operands.append(own.constant(operand.value))
            else:
                operands.append(self._as(self._value(operand, lane, values, lanes), operand, own))
        if step.primitive is identity:
            (dtype,) = step.operand_dtypes
            return Lanes(self.function, dtype, 1).convert(operands[0], Lanes(self.function, step.dtype, 1))
        return scalars.compute(step.primitive, self.function, 1, operands, step.operand_dtypes, step.dtype, step.params)

    def _as(self, value: str, number: int, lanes: Lanes) -> str:
        """A value in another dtype."""
        before = Lanes(self.function, self.nest.dtype_of(number), 1)
        return self.function.once(("as", value, lanes.dtype), lambda: before.convert(value, lanes))

    # --- places -----------------------------------------------------------------------------------------------------
    def _pointer(self, place: Place) -> str:
        return self.function.once(
            ("place", place),
            lambda: (
                self.function.value(f"getelementptr i8, ptr %p{place.parameter}, i64 {place.offset}")
                if place.offset
                else f"%p{place.parameter}"
            ),
        )

    def _offset(self, operand: NestRead | NestWrite, values: _Values) -> Index:
        terms = [(index, operand.strides[axis]) for axis, index in values.coordinates.items()]
        return self.function.offset(*terms)

    def _kept_coordinates(self, unit: Index) -> dict[int, Index]:
        return self._coordinates(self.grid.kept, unit)

    def _reduced_coordinates(self, unit: Index) -> dict[int, Index]:
        return self._coordinates(self.grid.reduced, unit)

    def _coordinates(self, line: Sequence[int], unit: Index) -> dict[int, Index]:
        """Positions along the axes of a line at a unit."""
        found: dict[int, Index] = {}
        for place, axis in reversed(list(enumerate(line))):
            size, lanes = self.nest.space[axis], self.grid.lanes if axis == self.grid.along else 1
            count = -(-size // lanes)
            index: Index = unit
            if place:
                unit, index = self.function.divide(unit, count)
            found[axis] = self.function.mul(index, lanes)
        return found

    # --- reductions -------------------------------------------------------------------------------------------------
    def _combiner(self, reduction: Reduction) -> Combiner:
        return Combiner(reduction.kind, Lanes(self.function, self.nest.dtype_reduced(reduction), 1))

    def _cell(self, combiner: Combiner) -> str:
        cell = self.function.slot(memory_type(combiner.lanes.dtype))
        combiner.lanes.store(combiner.start, cell)
        return cell

    def _found(self, k: int) -> int:
        """The number of values of a reduction that a thread finds."""
        return 1 if self.is_total[k] else self.grid.kept_lanes

    def _gathered_counts(self) -> list[int]:
        return [self.grid.threads if is_total else self.grid.reduced_threads for is_total in self.is_total]

    def _shared(self) -> tuple[list[int], int]:
        """Offsets in shared memory at which reductions are gathered, one for each, and the bytes of all."""
        regions, end = [], 0
        for k, reduction in enumerate(self.nest.reductions):
            dtype = self.nest.dtype_reduced(reduction)
            end = -(-end // dtype.itemsize) * dtype.itemsize
            regions.append(end)
            end += self.grid.threads * self._found(k) * dtype.itemsize if self._gathered_counts()[k] > 1 else 0
        return regions, end

    def _kept_in_shared(self) -> tuple[dict[int, tuple[int, int]], list[int]]:
        """Offsets in shared memory: of each read that several stages need, with the first of these stages, and of each reduction's result."""
        if self.stages == 1:
            return {}, []
        kept, totals, grid = dict[int, tuple[int, int]](), list[int](), self.grid
        stages = [needed_in(self.nest, stage) for stage in range(self.stages)]
        for number, nbytes in kept_by_rows(self.nest).items():
            start = -(-self.shared_bytes // 16) * 16
            kept[number] = start, next(stage for stage, needed in enumerate(stages) if number in needed)
            self.shared_bytes = start + grid.reduced_units * grid.kept_threads * grid.lanes * nbytes
        for reduction in self.nest.reductions:
            totals.append(-(-self.shared_bytes // 16) * 16)
            nbytes = self.nest.dtype_reduced(reduction).itemsize
            self.shared_bytes = totals[-1] + grid.kept_threads * grid.kept_lanes * nbytes
        return kept, totals

    def _put_away(self) -> None:
        """Write what a thread accumulated into shared memory or, of a thread that is alone, to where it belongs."""
        for k in self.active:
            combiner = self._combiner(self.nest.reductions[k])
            found = [combiner.lanes.load(cell) for cell in self.cells[k]]
            if self._found(k) == 1:
                found = [combiner.tree(found)]
            if self._gathered_counts()[k] == 1:
                self._give(k, found)
                continue
            for lane, value in enumerate(found):
                combiner.lanes.store(value, self._in_shared(k, self._member(k), lane))

    def _member(self, k: int) -> Index:
        """The number of a thread among those whose values are gathered."""
        return "%thread" if self.is_total[k] else self.reduced_thread

    def _in_shared(self, k: int, member: Index, lane: int) -> str:
        """The pointer of what a thread found: threads that follow each other write one after the other."""
        function, combiner = self.function, self._combiner(self.nest.reductions[k])
        region = function.element("%shared", self.regions[k], "i8")
        threads = self.grid.threads
        index = member
        if not self.is_total[k]:
            index = function.add(function.mul(member, self.grid.kept_threads), self.kept_thread)
        return function.element(region, function.add(index, lane * threads), memory_type(combiner.lanes.dtype))

    def _gather(self, before: Sequence[int], after: Sequence[int]) -> None:
        for k, (count, left) in enumerate(zip(before, after, strict=True)):
            if count == left:
                continue
            with self._if_less(self._member(k), left, count):
                combiner = self._combiner(self.nest.reductions[k])
                found = []
                for lane in range(self._found(k)):
                    places = [
                        self._in_shared(k, self.function.add(self._member(k), number), lane)
                        for number in range(0, count, left)
                    ]
                    found.append(combiner.tree([combiner.lanes.load(place) for place in places]))
                if left > 1:
                    for lane, value in enumerate(found):
                        combiner.lanes.store(value, self._in_shared(k, self._member(k), lane))
                else:
                    self._give(k, found)

    def _give(self, k: int, found: Sequence[str]) -> None:
        """Store the values of a reduction that a block, or a thread of it, is left with."""
        function, grid, reduction, result = self.function, self.grid, self.nest.reductions[k], self.results[k]
        own = self._combiner(reduction).lanes
        result_lanes = own.as_dtype(reduction.dtype)
        for lane, value in enumerate(found) if self.totals else ():
            own.store(value, *self._total_at(k, lane))
        pointer = self._pointer(result.place)
        if self.is_total[k]:
            if result.is_partial:
                own.store(found[0], pointer, "%block")
            else:
                result_lanes.store(own.convert(found[0], result_lanes), pointer)
            return
        with self._if_less(self.kept_unit, grid.kept_units, grid.kept_blocks * grid.kept_threads):
            if result.is_partial:
                line = grid.kept_units * grid.kept_lanes
                first = function.add(function.mul(self.split, line), function.mul(self.kept_unit, grid.kept_lanes))
                for lane, value in enumerate(found):
                    own.store(value, pointer, function.add(first, lane))
                return
            coordinates = self._kept_coordinates(self.kept_unit)
            offset = function.offset(*((index, reduction.strides[axis]) for axis, index in coordinates.items()))
            for lane, value in enumerate(found):
                place = function.add(offset, lane * reduction.strides[grid.along])
                result_lanes.store(own.convert(value, result_lanes), pointer, place)

    # --- conditions -------------------------------------------------------------------------------------------------
    def _if_less(self, index: Index, stop: int, bound: int) -> AbstractContextManager[None]:
        """A block for an index below `stop`; unconditional where it is known to be, as it is below `bound`."""
        return nullcontext() if bound <= stop else self.function.when(self._less(index, stop))

    def _less(self, index: Index, stop: Index) -> str:
        return self.function.value(f"icmp slt {self.function.index_type} {index}, {stop}")

    def _smaller(self, a: Index, b: Index) -> Index:
        type_ = self.function.index_type
        return self.function.value(f"select i1 {self._less(a, b)}, {type_} {a}, {type_} {b}")
