"""A correlation by quads, as a kernel.

    the terms of all weights
    for blocks of examples and rows:  copy the block with its zeros
        for panels of quads:  the terms of their patches, products with those of weights, quads from the sums
        the rows of the block to where they belong

Lanes are quads. Terms are written just as the products read them. Whether all results are finite is found on the way.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from pullback.backends.native.kernels.convolution.planes import fill
from pullback.backends.native.kernels.convolution.rows import by_turns, clear_row, copy_row, overlapping
from pullback.backends.native.kernels.convolution.winograd.plans import QUAD, TERMS, QuadPlan
from pullback.backends.native.kernels.convolution.winograd.transforms import (
    quad_of_terms,
    terms_of_patch,
    terms_of_window,
)
from pullback.backends.native.kernels.tiles import Column, Factor, sum_products
from pullback.backends.native.kernels.tiles import Tile as Products
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import Lanes, memory_type

#: How many windows of weights have their terms computed together.
_GATHERED = 4


def write_quads(function: Function, plan: QuadPlan, weights: str, source: str, target: str, scratch: str) -> str:
    """The body of a kernel; gives an i1 that is true where a result is not finite, or what it is made of."""
    return _Writer(function, plan, weights, source, target, scratch).write()


class _Writer:
    def __init__(
        self, function: Function, plan: QuadPlan, weights: str, source: str, target: str, scratch: str
    ) -> None:
        self.function = function
        self.plan = plan
        self.correlation = plan.correlation
        self.lanes = Lanes(function, plan.correlation.dtype, plan.lanes)
        self.element = memory_type(plan.correlation.dtype)
        self.weights = weights
        self.source = source
        self.target = target
        self.copy = scratch
        self.lines = self._at(self.copy, plan.copied)
        self.weight_terms = self._at(self.lines, plan.lines)
        self.patch_terms = self._at(self.weight_terms, TERMS * plan.weight_terms)
        self.quad_terms = self._at(self.patch_terms, TERMS * plan.patch_terms)
        self.doubt = function.slot(self.lanes.type, self.lanes.constant(0))
        """Zero times every result, added up: NaN where one is not finite."""

    def _at(self, pointer: str, index: Index) -> str:
        return self.function.element(pointer, index, self.element)

    def write(self) -> str:
        """Weights, blocks, panels, rows."""
        function, plan, correlation = self.function, self.plan, self.correlation
        self._write_weight_terms()
        clear_row(function, self.lanes, self.copy, plan.copied)
        with ExitStack() as stack:
            starts = [
                stack.enter_context(overlapping(function, axis.count, count))
                for axis, count in zip(plan.planes.axes, plan.block, strict=True)
            ]
            fill(function, self.lanes, correlation.source, plan.planes, self.source, starts, self.copy)
            first = 0
            for tile, panels in plan.panels:
                length = tile.vectors * plan.lanes
                with function.loop(first, first + panels * length, length) as start:
                    self._write_patch_terms(start, tile.vectors)
                    self._write_products(tile.outs, tile.vectors)
                    self._write_quads(start, tile.vectors)
                first += panels * length
            self._write_rows(starts)
        doubt = function.load(self.lanes.type, self.doubt)
        return self.lanes.any_lane(self.lanes.is_nan(doubt))

    # --- weights ----------------------------------------------------------------------------------------------------
    def _write_weight_terms(self) -> None:
        plan, correlation = self.plan, self.correlation
        weights = correlation.weights
        lines, numbers = (correlation.outs, weights.outs), (correlation.ins, weights.ins)
        if not plan.is_by_inputs:
            lines, numbers = numbers, lines
        # Weights are gathered one by one, so that wider vectors would be more text and not faster.
        lanes = Lanes(self.function, correlation.dtype, _GATHERED if numbers[0] >= _GATHERED else 1)
        with self.function.loop(0, lines[0]) as line:
            source = self._at(self.weights, self.function.mul(line, lines[1]))
            target = self._at(self.weight_terms, self.function.mul(line, plan.weight_pitch))
            with overlapping(self.function, numbers[0], lanes.width) as number:
                window = self._at(source, self.function.mul(number, numbers[1]))
                self._write_terms_of_windows(lanes, window, numbers[1], self._at(target, number))

    def _write_terms_of_windows(self, lanes: Lanes, windows: str, stride: int, target: str) -> None:
        strides = self.correlation.weights.taps[1:]
        order = [sorted(axis.courses[0].taps, key=lambda tap: tap.offset) for axis in self.correlation.axes[1:]]
        window = [
            [
                lanes.load(windows, row.index * strides[0] + column.index * strides[1], stride=stride)
                for column in order[1]
            ]
            for row in order[0]
        ]
        self._store_terms(lanes, terms_of_window(lanes, window), target, self.plan.weight_terms)

    def _store_terms(self, lanes: Lanes, terms: Sequence[Sequence[str]], target: str, pitch: int) -> None:
        for number, term in enumerate(term for row in terms for term in row):
            lanes.store(term, target, number * pitch)

    # --- a panel ----------------------------------------------------------------------------------------------------
    def _write_patch_terms(self, start: Index, vectors: int) -> None:
        function, lanes, planes = self.function, self.lanes, self.plan.planes
        rows, columns = (
            [planes.place(number, tap) for tap in planes.axes[number].courses[0].taps] for number in (1, 2)
        )
        with function.loop(0, self.correlation.ins) as channel:
            source = self._at(self._at(self.copy, function.mul(channel, planes.channel_pitch)), start)
            target = self._at(self.patch_terms, function.mul(channel, vectors * lanes.width))
            with function.loop(0, vectors * lanes.width, lanes.width) as place:
                here = self._at(source, place)
                patch = [[lanes.load(here, row + column) for column in columns] for row in rows]
                self._store_terms(lanes, terms_of_patch(lanes, patch), self._at(target, place), self.plan.patch_terms)

    def _write_products(self, outs: int, vectors: int) -> None:
        """One product of matrices for each term."""
        function, plan, lanes, dtype = self.function, self.plan, self.lanes, self.correlation.dtype
        length = vectors * lanes.width
        entry, step = (plan.weight_pitch, 1) if plan.is_by_inputs else (1, plan.weight_pitch)
        products = Products(outs, (Column(lanes),) * vectors, self.correlation.ins)
        with function.loop(0, TERMS) as term, overlapping(function, self.correlation.outs, outs) as out:
            weights = self._at(
                self._at(self.weight_terms, function.mul(term, plan.weight_terms)), function.mul(out, entry)
            )
            patches = self._at(self.patch_terms, function.mul(term, plan.patch_terms))
            left = Factor(weights, entry, step, 0, dtype)
            right = Factor(patches, lanes.width, length, 1, dtype)
            quads = self._at(self._at(self.quad_terms, function.mul(term, plan.quad_terms)), function.mul(out, length))
            for row, sums in enumerate(sum_products(products, left, right)):
                for vector, value in enumerate(sums):
                    lanes.store(value, quads, row * length + vector * lanes.width)

    def _write_quads(self, start: Index, vectors: int) -> None:
        """From sums of products to lines of results: even and odd ones of a row by turns."""
        function, plan, lanes = self.function, self.plan, self.lanes
        width = lanes.width
        with function.loop(0, self.correlation.outs) as out:
            source = self._at(self.quad_terms, function.mul(out, vectors * width))
            target = self._at(self.lines, function.mul(out, QUAD * plan.row_pitch))
            target = self._at(target, function.mul(start, QUAD))
            with function.loop(0, vectors * width, width) as place:
                source, target = self._at(source, place), self._at(target, function.mul(place, QUAD))
                terms = [
                    [lanes.load(source, (4 * row + column) * plan.quad_terms) for column in range(4)]
                    for row in range(4)
                ]
                doubt = function.load(lanes.type, self.doubt)
                for row, (even, odd) in enumerate(quad_of_terms(lanes, terms)):
                    for value in (even, odd):
                        doubt = lanes.mul_add(value, lanes.constant(0), doubt)
                    for half, both in enumerate(by_turns(lanes, even, odd)):
                        lanes.store(both, target, row * plan.row_pitch + half * width)
                function.store(lanes.type, doubt, self.doubt)

    # --- results ----------------------------------------------------------------------------------------------------
    def _write_rows(self, starts: Sequence[Index]) -> None:
        """From lines to where results belong, leaving out what is between rows."""
        function, plan = self.function, self.plan
        layout, (_, rows, columns) = self.correlation.target, self.correlation.axes
        pitches = plan.planes.pitches
        with (
            function.loop(0, self.correlation.outs) as out,
            function.loop(0, plan.block[0]) as example,
            function.loop(0, plan.block[1]) as quad,
            function.loop(0, QUAD) as part,
        ):
            row = function.add(function.mul(function.add(starts[1], quad), QUAD), part)
            line = self._at(self.lines, function.offset((out, QUAD * plan.row_pitch), (part, plan.row_pitch)))
            line = self._at(line, function.mul(function.offset((example, pitches[0]), (quad, pitches[1])), QUAD))
            place = function.offset(
                (function.add(starts[0], example), layout.examples), (out, layout.channels), (row, layout.spatial[0])
            )
            with ExitStack() as stack:
                if rows.count % QUAD:
                    stack.enter_context(function.when(function.value(f"icmp slt i64 {row}, {rows.count}")))
                copy_row(function, self.lanes, line, 1, self._at(self.target, place), layout.spatial[1], columns.count)
