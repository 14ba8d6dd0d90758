"""The text of a nest: its loops, and every value at the outermost place where its operands are.

A value that varies along no axis that a loop walks is computed before that loop; one that is the same in all lanes is
computed once and spread. Positions that one turn of a walk takes are *copies*: a value has as many copies as the axes it
varies along have.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np

from pullback.backends.llvm import accumulators
from pullback.backends.llvm.accumulators import Combiner, add_finely, finer_cells, finer_total
from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.llvm.elementary import scalars
from pullback.backends.llvm.elementary.called_functions import most_bodies
from pullback.backends.native.kernels import tiling
from pullback.backends.native.kernels.costs import is_long
from pullback.backends.native.kernels.register_transpose import shuffled, transposed
from pullback.backends.native.kernels.strided import load_strided
from pullback.backends.native.kernels.tiling import AccumulatorStorage, Span, Tiling, Walk, tile
from pullback.backends.nests.nest import Constant, Nest, NestRead, NestWrite, Reduction, Step
from pullback.dataclass import dataclass
from pullback.rules.activations import identity

_Operand: TypeAlias = NestRead | NestWrite | Reduction
_Key: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Range:
    """The part of an axis that a walk goes along; `whole` where it takes whole turns only."""

    start: Index
    stop: Index
    whole: bool


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a value: its dtype, and whether it is in every lane."""

    dtype: np.dtype[Any]
    in_lanes: bool


@dataclass(frozen=True, slots=True)
class _Scope:
    """The state at one place of the nest: the values that are known there."""

    copies: dict[int, int]
    """Positions of the turn along the axes that are bound."""
    active: int
    """Lanes that take part in the last vector of the turn."""
    ranges: dict[int, _Range]
    pointers: dict[str, str]
    """Pointers of all operands, at the first position of the turn."""
    values: dict[tuple[int, _Form, _Key], str] = field(default_factory=dict)
    cells: dict[tuple[int, _Key], list[str]] = field(default_factory=dict)
    """Slots of accumulators by reduction and copy."""
    finer: dict[tuple[int, _Key], list[str]] = field(default_factory=dict)


def write_nest(function: Function, nest: Nest, pointers: Sequence[str]) -> None:
    """The whole nest of few axes, over a space that has points."""
    _Writer(function, nest, pointers).write()


class _Writer:
    def __init__(self, function: Function, nest: Nest, pointers: Sequence[str]) -> None:
        self.function = function
        self.nest = nest
        self.pointers = pointers
        self.tiling: Tiling = tile(nest, function.module.vector_bits)
        self.along = len(nest.space) - 1
        self.walks = {loop.axis: loop for loop in self.tiling.loops if isinstance(loop, Walk)}
        self.axes = nest.axes_of_values()
        self.depths = [
            max((self.tiling.walk_depth(axis) for axis in axes), default=0) for axes in self._axes_of_turns()
        ]
        self.forms = self._forms_asked_for()
        self.operands: dict[str, _Operand] = {
            **{f"read {k}": read for k, read in enumerate(nest.reads)},
            **{f"write {k}": write for k, write in enumerate(nest.writes)},
            **{f"result {k}": reduction for k, reduction in enumerate(nest.reductions)},
        }
        self.columns: dict[str, tuple[str, np.dtype[Any]]] = {}
        self.most_bodies = most_bodies(math.prod(nest.space))

    def _axes_of_turns(self) -> list[frozenset[int]]:
        """The axes along which values differ from turn to turn: not the last, if they have a period."""
        last = frozenset({self.along})
        axes = [own - last if read.period else own for own, read in zip(self.axes, self.nest.reads, strict=False)]
        for step in self.nest.steps:
            axes.append(frozenset().union(*(axes[one] for one in step.operands if not isinstance(one, Constant))))
        return axes

    @property
    def lanes(self) -> int:
        return self.tiling.lanes

    def write(self) -> None:
        """Write the whole nest."""
        scope = _Scope(
            copies={},
            active=self.lanes,
            ranges={axis: _Range(0, size, whole=False) for axis, size in enumerate(self.nest.space)},
            pointers={name: self.pointers[operand.pointer] for name, operand in self.operands.items()},
        )
        self._enter(0, scope)

    # --- loops ------------------------------------------------------------------------------------------------------
    def _enter(self, depth: int, scope: _Scope) -> None:
        """Write everything inside of the loops down to a depth."""
        if depth < len(self.tiling.loops):
            for number in self._values_at(depth):
                for copy in self._copies(scope, self.axes[number]):
                    self._compute(number, copy, scope)
        self._begin(depth, scope)
        if depth == len(self.tiling.loops):
            self._body(scope)
        else:
            loop = self.tiling.loops[depth]
            if isinstance(loop, Span):
                self._span(loop, depth, scope)
            else:
                self._walk(loop, depth, scope)
        self._end(depth, scope)

    def _inside(self, scope: _Scope, **changes: Any) -> _Scope:
        own = {name: dict(getattr(scope, name)) for name in ("pointers", "values", "cells", "finer")}
        return replace(scope, **{**own, **changes})

    def _span(self, span: Span, depth: int, scope: _Scope) -> None:
        size = self.nest.space[span.axis]
        walk = self.walks[span.axis]
        main = size // walk.length * walk.length
        if main:
            with self.function.loop(0, main, span.length) as start:
                stop = self.function.add(start, span.length)
                if isinstance(stop, int):
                    stop = min(stop, main)
                elif main % span.length:
                    self.function.module.declare("llvm.smin.i64", "i64", "i64", "i64")
                    stop = self.function.call("i64", "@llvm.smin.i64", ("i64", stop), ("i64", main))
                self._enter(depth + 1, self._stretch(scope, span.axis, _Range(start, stop, whole=True)))
        if main < size:
            self._enter(depth + 1, self._stretch(scope, span.axis, _Range(main, size, whole=False)))

    def _stretch(self, scope: _Scope, axis: int, range_: _Range) -> _Scope:
        return self._inside(scope, ranges={**scope.ranges, axis: range_})

    def _walk(self, walk: Walk, depth: int, scope: _Scope) -> None:
        range_ = scope.ranges[walk.axis]
        if range_.whole:
            with self.function.loop(range_.start, range_.stop, walk.length, at_least_once=True) as index:
                self._turn(walk, depth, scope, index, walk.length)
            return
        start, stop = range_.start, range_.stop
        if isinstance(start, str) or isinstance(stop, str):
            raise TypeError("a walk whose last turn is not whole goes between numbers that are known")
        main = (stop - start) // walk.length * walk.length
        if main:
            with self.function.loop(start, start + main, walk.length) as index:
                self._turn(walk, depth, scope, index, walk.length)
        if start + main < stop:
            self._turn(walk, depth, scope, start + main, stop - start - main)

    def _turn(self, walk: Walk, depth: int, scope: _Scope, index: Index, taken: int) -> None:
        """Write one turn, for a number of elements."""
        copies = math.ceil(taken / walk.unit)
        pointers = dict(scope.pointers)
        for name, pointer in pointers.items():
            stride, dtype = self._stride(name, walk.axis), self._dtype(name)
            if stride:
                offset = self.function.mul(index, stride)
                pointers[name] = self.function.element(pointer, offset, memory_type(dtype))
        active = taken - (copies - 1) * walk.unit if walk.axis == self.along else scope.active
        changes = {"copies": {**scope.copies, walk.axis: copies}, "active": active, "pointers": pointers}
        self._enter(depth + 1, self._inside(scope, **changes))

    def _stride(self, name: str, axis: int) -> int:
        if name in self.operands:
            operand = self.operands[name]
            begins_again = axis == self.along and isinstance(operand, NestRead) and operand.period
            return 0 if begins_again else operand.strides[axis]
        return 1 if axis == self.along else 0

    def _dtype(self, name: str) -> np.dtype[Any]:
        return self.operands[name].dtype if name in self.operands else self.columns[name][1]

    # --- copies -----------------------------------------------------------------------------------------------------
    def _copies(self, scope: _Scope, axes: frozenset[int]) -> Iterator[_Key]:
        """Positions of a turn along some axes, of all axes of the space; 0 along the others.

        An axis that is not bound yet is one along which there is a period.
        """
        counts = [
            (scope.copies[axis] if axis in scope.copies else self.walks[axis].copies) if axis in axes else 1
            for axis in range(len(self.nest.space))
        ]
        return itertools.product(*map(range, counts))

    def _of(self, copy: _Key, axes: frozenset[int]) -> _Key:
        return tuple(position if axis in axes else 0 for axis, position in enumerate(copy))

    def _active(self, copy: _Key, scope: _Scope) -> int:
        """Lanes that take part in a copy."""
        if not self.nest.space:
            return 1
        return scope.active if copy[self.along] == scope.copies[self.along] - 1 else self.lanes

    def _offset(self, operand: _Operand, copy: _Key) -> int:
        """The distance of a copy from the first one."""
        units = [self.lanes if axis == self.along else 1 for axis in range(len(copy))]
        return sum(
            position * unit * stride for position, unit, stride in zip(copy, units, operand.strides, strict=True)
        )

    # --- values -----------------------------------------------------------------------------------------------------
    def _forms_asked_for(self) -> list[set[_Form]]:
        forms: list[set[_Form]] = [set() for _ in self.axes]
        for number, step in enumerate(self.nest.steps, len(self.nest.reads)):
            for operand, dtype in zip(step.operands, step.operand_dtypes, strict=True):
                if not isinstance(operand, Constant):
                    forms[operand].add(_Form(dtype, self._in_lanes(number)))
        for write in self.nest.writes:
            forms[write.value].add(_Form(write.dtype, in_lanes=bool(self.nest.space)))
        for reduction in self.nest.reductions:
            forms[reduction.value].add(_Form(self.nest.dtype_reduced(reduction), in_lanes=bool(self.nest.space)))
        return forms

    def _in_lanes(self, number: int) -> bool:
        """True if a value differs from lane to lane."""
        return self.along in self.axes[number]

    def _values_at(self, depth: int) -> list[int]:
        return [number for number, own in enumerate(self.depths) if own == depth and self.forms[number]]

    def _lanes(self, form: _Form) -> Lanes:
        return Lanes(self.function, form.dtype, self.lanes if form.in_lanes else 1)

    def _value(self, number: int, form: _Form, copy: _Key, scope: _Scope) -> str:
        return scope.values[number, form, self._of(copy, self.axes[number])]

    def _compute(self, number: int, copy: _Key, scope: _Scope) -> None:
        """Compute one copy of a value, in every form that is needed."""
        reads = self.nest.reads
        copy = self._of(copy, self.axes[number])
        producer = reads[number] if number < len(reads) else self.nest.steps[number - len(reads)]
        own = _Form(producer.dtype, self._in_lanes(number))
        if (number, own, copy) in scope.values:
            return
        if isinstance(producer, Step):
            self._put(number, own, copy, self._step(producer, own, copy, scope), scope)
        elif own.in_lanes and self._is_transposed(producer):
            for place, name in enumerate(self._read_square(number, own, copy, scope)):
                self._put(number, own, self._of_square(copy, place), name, scope)
        else:
            self._put(number, own, copy, self._read(number, own, copy, scope), scope)

    def _put(self, number: int, own: _Form, copy: _Key, name: str, scope: _Scope) -> None:
        """Note a copy of a value, and make its other forms."""
        scope.values[number, own, copy] = name
        for form in sorted(self.forms[number], key=lambda form: (form.dtype.str, form.in_lanes)):
            narrow = _Form(form.dtype, own.in_lanes)
            if (number, narrow, copy) not in scope.values:
                scope.values[number, narrow, copy] = self._lanes(own).convert(name, self._lanes(narrow))
            if form not in (narrow, own):
                scope.values[number, form, copy] = self._lanes(form).splat(scope.values[number, narrow, copy])

    def _read(self, number: int, form: _Form, copy: _Key, scope: _Scope) -> str:
        read, pointer = self.nest.reads[number], scope.pointers[f"read {number}"]
        offset = self._offset(read, copy)
        if not form.in_lanes:
            return self._lanes(form).load(pointer, offset)
        if read.period:
            return self._read_period(read, pointer, copy, self._lanes(form))
        return load_strided(self._lanes(form), pointer, offset, read.strides[self.along], self._active(copy, scope))

    def _read_period(self, read: NestRead, pointer: str, copy: _Key, lanes: Lanes) -> str:
        """The operand along a copy that begins again and again: lanes of the registers that hold it once."""
        stride, width = read.strides[self.along], self.lanes
        first = self._offset(read, self._of(copy, frozenset(range(self.along))))
        places = [(copy[self.along] * width + lane) % read.period for lane in range(width)]
        chosen = ""
        for start in sorted({place // width * width for place in places}):
            row = load_strided(lanes, pointer, first + start * stride, stride, min(width, read.period - start))
            order = [
                width + place - start if start <= place < start + width else lane for lane, place in enumerate(places)
            ]
            chosen = shuffled(lanes, chosen or row, row, order)
        return chosen

    def _is_transposed(self, operand: _Operand) -> bool:
        """True if an operand is loaded or stored by squares."""
        across = self.tiling.across
        if across is None or operand.dtype.kind == "b" or self.walks[across].copies < 2:
            return False
        return operand.strides[across] == 1 and abs(operand.strides[self.along]) > 1

    def _read_square(self, number: int, form: _Form, copy: _Key, scope: _Scope) -> list[str]:
        """All copies of a read across the lanes, by loading a square and transposing it."""
        read, lanes = self.nest.reads[number], self._lanes(form)
        first, count = self._first_of_square(copy, scope)
        pointer, offset = scope.pointers[f"read {number}"], self._offset(read, first)
        stride, active = read.strides[self.along], self._active(copy, scope)
        rows = [lanes.load(pointer, offset + row * stride, active=count) for row in range(active)]
        rows += [lanes.constant(0)] * (self.lanes - active)
        return transposed(lanes, rows)[:count]

    def _first_of_square(self, copy: _Key, scope: _Scope) -> tuple[_Key, int]:
        """The first copy of the square that a copy is in, and how many there are."""
        across = self.tiling.across or 0
        return self._of_square(copy, 0), scope.copies[across]

    def _of_square(self, copy: _Key, place: int) -> _Key:
        return tuple(place if axis == self.tiling.across else own for axis, own in enumerate(copy))

    def _step(self, step: Step, form: _Form, copy: _Key, scope: _Scope) -> str:
        names = []
        for operand, dtype in zip(step.operands, step.operand_dtypes, strict=True):
            wanted = _Form(dtype, form.in_lanes)
            if isinstance(operand, Constant):
                names.append(self._lanes(wanted).constant(operand.value))
            else:
                names.append(self._value(operand, wanted, copy, scope))
        width = self.lanes if form.in_lanes else 1
        if step.primitive is identity:
            (dtype,), own = step.operand_dtypes, self._lanes(form)
            return own.as_dtype(dtype).convert(names[0], own)
        return scalars.compute(
            step.primitive,
            self.function,
            width,
            names,
            step.operand_dtypes,
            step.dtype,
            step.params,
            most_bodies=self.most_bodies,
        )

    # --- what is done in a turn -------------------------------------------------------------------------------------
    def _body(self, scope: _Scope) -> None:
        numbers = self._values_at(len(self.tiling.loops))
        writes = list(enumerate(self.nest.writes))
        terms: dict[tuple[int, _Key], list[str]] = {}
        if is_long(self.nest) and self.tiling.across is None:
            self._compute_by_turns(numbers, scope)
        for copy in self._copies(scope, frozenset(scope.copies)):
            for number in numbers:
                self._compute(number, copy, scope)
            for k, reduction in enumerate(self.nest.reductions):
                if self.tiling.keeping[k].on_stack:
                    terms.setdefault((k, self._kept(reduction, copy)), []).append(self._term(k, copy, scope))
                else:
                    self._accumulate(k, copy, scope)
            for k, write in writes:
                if not self._is_transposed(write):
                    self._write(k, write, copy, scope)
        for k, write in writes:
            if self._is_transposed(write):
                self._write_squares(k, write, scope)
        self._add_terms(terms, scope)

    def _add_terms(self, terms: dict[tuple[int, _Key], list[str]], scope: _Scope) -> None:
        """Add terms to the accumulators on the stack."""
        for (k, kept), found in terms.items():
            combiner = self._combiner(k)
            place = self._column(f"stack {k}", kept[self.along] * self.lanes, scope)
            active = self._active(kept, scope)
            total = combiner.lanes.load(place, active=active)
            combiner.lanes.store(combiner.combine(total, combiner.tree(found)), place, active=active)

    def _compute_by_turns(self, numbers: Sequence[int], scope: _Scope) -> None:
        """Compute each step for all bodies before the next step, so that long steps of several bodies overlap."""
        for number in numbers:
            for copy in self._copies(scope, frozenset(scope.copies)):
                self._compute(number, copy, scope)

    def _write(self, k: int, write: NestWrite, copy: _Key, scope: _Scope) -> None:
        form = _Form(write.dtype, in_lanes=bool(self.nest.space))
        value, pointer = self._value(write.value, form, copy, scope), scope.pointers[f"write {k}"]
        offset = self._offset(write, copy)
        if not self.nest.space:
            self._lanes(form).store(value, pointer)
            return
        stride = write.strides[self.along]
        self._lanes(form).store(value, pointer, offset, stride=stride, active=self._active(copy, scope))

    def _write_squares(self, k: int, write: NestWrite, scope: _Scope) -> None:
        form = _Form(write.dtype, in_lanes=True)
        lanes, stride = self._lanes(form), write.strides[self.along]
        for copy in self._copies(scope, frozenset(axis for axis in scope.copies if axis != self.tiling.across)):
            first, count = self._first_of_square(copy, scope)
            columns = [self._value(write.value, form, self._of_square(copy, place), scope) for place in range(count)]
            rows = transposed(lanes, columns + [lanes.constant(0)] * (self.lanes - count))
            pointer, offset = scope.pointers[f"write {k}"], self._offset(write, first)
            for row in range(self._active(copy, scope)):
                lanes.store(rows[row], pointer, offset + row * stride, active=count)

    # --- reductions -------------------------------------------------------------------------------------------------
    def _combiner(self, k: int) -> Combiner:
        reduction = self.nest.reductions[k]
        dtype = accumulators.accumulated_dtype(self.nest.dtype_reduced(reduction), self.lanes)
        return Combiner(reduction.kind, Lanes(self.function, dtype, self.lanes))

    def _kept_axes(self, reduction: Reduction) -> frozenset[int]:
        return frozenset(range(len(self.nest.space))) - reduction.axes

    def _kept(self, reduction: Reduction, copy: _Key) -> _Key:
        return self._of(copy, self._kept_axes(reduction))

    def _term(self, k: int, copy: _Key, scope: _Scope) -> str:
        """The contribution of a copy to a reduction; lanes that do not take part add nothing."""
        combiner, reduction = self._combiner(k), self.nest.reductions[k]
        form = _Form(self.nest.dtype_reduced(reduction), in_lanes=bool(self.nest.space))
        term = self._lanes(form).convert(self._value(reduction.value, form, copy, scope), combiner.lanes)
        active = self._active(copy, scope)
        if self.along in reduction.axes and active < self.lanes:
            term = combiner.lanes.select(combiner.lanes.first(active), term, combiner.start)
        return term

    def _begin(self, depth: int, scope: _Scope) -> None:
        """Start the accumulators that begin at this depth."""
        for k, keeping in enumerate(self.tiling.keeping):
            first = keeping.begins if keeping.block is None else keeping.block
            if keeping.block is not None and keeping.begins == depth:
                self._begin_finer(k, keeping, scope)
            if first == depth:
                self._begin_first(k, keeping, scope)

    def _begin_first(self, k: int, keeping: AccumulatorStorage, scope: _Scope) -> None:
        combiner, reduction = self._combiner(k), self.nest.reductions[k]
        if keeping.on_stack:
            self._place_columns(f"stack {k}", combiner.lanes, scope)

            def clear(index: Index, active: int) -> None:
                combiner.lanes.store(combiner.start, self._column(f"stack {k}", index, scope), active=active)

            self._sweep(scope, clear)
            return
        for kept in self._copies(scope, self._kept_axes(reduction)):
            scope.cells[k, kept] = [self._cell(combiner.lanes, combiner.start) for _ in range(keeping.partials)]

    def _begin_finer(self, k: int, keeping: AccumulatorStorage, scope: _Scope) -> None:
        lanes, reduction = self._combiner(k).lanes, self.nest.reductions[k]
        wide = lanes.as_dtype("f8")
        zero = wide.constant(-0.0)
        if keeping.on_stack:
            for name in self._finer_names(k):
                self._place_columns(name, wide, scope)

            def clear(index: Index, active: int) -> None:
                for name in self._finer_names(k):
                    wide.store(zero, self._column(name, index, scope), active=active)

            self._sweep(scope, clear)
            return
        for kept in self._copies(scope, self._kept_axes(reduction)):
            scope.finer[k, kept] = [self._cell(wide, zero) for _ in range(finer_cells(lanes))]

    def _finer_names(self, k: int) -> list[str]:
        return [f"finer {k} {part}" for part in range(finer_cells(self._combiner(k).lanes))]

    def _cell(self, lanes: Lanes, start: str) -> str:
        cell = self.function.slot(self._cell_type(lanes))
        lanes.store(start, cell)
        return cell

    def _cell_type(self, lanes: Lanes) -> str:
        memory = memory_type(lanes.dtype)
        return memory if lanes.width == 1 else f"<{lanes.width} x {memory}>"

    def _accumulate(self, k: int, copy: _Key, scope: _Scope) -> None:
        combiner, reduction = self._combiner(k), self.nest.reductions[k]
        cells = scope.cells[k, self._kept(reduction, copy)]
        counts = [count for axis, count in sorted(scope.copies.items()) if axis in reduction.axes]
        places = [copy[axis] for axis in sorted(reduction.axes)]
        number = 0
        for place, count in zip(places, counts, strict=True):
            number = number * count + place
        cell = cells[number % len(cells)]
        combiner.lanes.store(combiner.combine(combiner.lanes.load(cell), self._term(k, copy, scope)), cell)

    def _end(self, depth: int, scope: _Scope) -> None:
        """Put away the accumulators that end here: into a second one, or into the result."""
        for k, keeping in enumerate(self.tiling.keeping):
            if keeping.block == depth:
                self._end_block(k, keeping, scope)
            if keeping.begins == depth:
                self._end_reduction(k, keeping, scope)

    def _end_block(self, k: int, keeping: AccumulatorStorage, scope: _Scope) -> None:
        combiner = self._combiner(k)
        lanes = combiner.lanes
        if keeping.on_stack:

            def add(index: Index, active: int) -> None:
                block = lanes.load(self._column(f"stack {k}", index, scope), active=active)
                cells = [self._column(name, index, scope) for name in self._finer_names(k)]
                add_finely(lanes, block, cells, active)

            self._sweep(scope, add)
            return
        for kept in self._copies(scope, self._kept_axes(self.nest.reductions[k])):
            block = combiner.tree([lanes.load(cell) for cell in scope.cells[k, kept]])
            add_finely(lanes, block, scope.finer[k, kept])

    def _end_reduction(self, k: int, keeping: AccumulatorStorage, scope: _Scope) -> None:
        combiner, reduction = self._combiner(k), self.nest.reductions[k]
        if keeping.on_stack:
            self._end_columns(k, keeping, scope)
            return
        for kept in self._copies(scope, self._kept_axes(reduction)):
            lanes = combiner.lanes
            if keeping.block is None:
                total = combiner.tree([lanes.load(cell) for cell in scope.cells[k, kept]])
            else:
                total, lanes = finer_total(lanes, scope.finer[k, kept]), lanes.as_dtype("f8")
            if self.nest.space and self.along in reduction.axes:
                total, lanes = Combiner(reduction.kind, lanes).across(total), lanes.narrowed()
            self._give(k, keeping, lanes.convert(total, lanes.as_dtype(reduction.dtype)), kept, scope)

    def _give(self, k: int, keeping: AccumulatorStorage, total: str, kept: _Key, scope: _Scope) -> None:
        """Store the total of a copy in the result, or add it to the stored value."""
        reduction = self.nest.reductions[k]
        pointer, offset = scope.pointers[f"result {k}"], self._offset(reduction, kept)
        in_lanes = bool(self.nest.space) and self.along not in reduction.axes
        lanes = Lanes(self.function, reduction.dtype, self.lanes if in_lanes else 1)
        stride = reduction.strides[self.along] if in_lanes else 1
        active = self._active(kept, scope) if in_lanes else None
        if keeping.returns:
            before = lanes.load(pointer, offset, stride=stride, active=active)
            total = Combiner(reduction.kind, lanes).combine(before, total)
        lanes.store(total, pointer, offset, stride=stride, active=active)

    # --- sums of columns on the stack -------------------------------------------------------------------------------
    def _place_columns(self, name: str, lanes: Lanes, scope: _Scope) -> None:
        """Make room for a number of each column of the strip; its pointer is of column 0 of the matrix."""
        if name not in self.columns:
            columns = min(tiling.FAR_STRIP // 4, self.nest.space[self.along])
            slot = self.function.slot(memory_type(lanes.dtype), count=columns, align=64)
            self.columns[name] = (slot, lanes.dtype)
        before = self.function.sub(0, scope.ranges[self.along].start)
        scope.pointers[name] = self.function.element(self.columns[name][0], before, memory_type(lanes.dtype))

    def _column(self, name: str, index: Index, scope: _Scope) -> str:
        """Pointer to the number of a column, or of the first of a vector of columns."""
        return self.function.element(scope.pointers[name], index, memory_type(self._dtype(name)))

    def _end_columns(self, k: int, keeping: AccumulatorStorage, scope: _Scope) -> None:
        reduction, lanes = self.nest.reductions[k], self._combiner(k).lanes

        def give(index: Index, active: int) -> None:
            if keeping.block is None:
                total, own = lanes.load(self._column(f"stack {k}", index, scope), active=active), lanes
            else:
                cells = [self._column(name, index, scope) for name in self._finer_names(k)]
                total, own = finer_total(lanes, cells, active), lanes.as_dtype("f8")
            result = lanes.as_dtype(reduction.dtype)
            stride = reduction.strides[self.along]
            place = self.function.mul(index, stride)
            result.store(own.convert(total, result), scope.pointers[f"result {k}"], place, stride=stride, active=active)

        self._sweep(scope, give)

    def _sweep(self, scope: _Scope, action: Callable[[Index, int], None]) -> None:
        """Do something for all columns of the strip, vector by vector."""
        range_, lanes = scope.ranges[self.along], self.lanes
        if range_.whole:
            with self.function.loop(range_.start, range_.stop, lanes, at_least_once=True) as index:
                action(index, lanes)
            return
        start, stop = int(range_.start), int(range_.stop)
        main = (stop - start) // lanes * lanes
        if main:
            with self.function.loop(start, start + main, lanes) as index:
                action(index, lanes)
        if start + main < stop:
            action(start + main, stop - start - main)
