"""The gradient of a convolution with respect to its weights by quads, as a kernel.

    for blocks of examples and rows:
        copy x with its zeros, inputs last;  the terms of patches, lanes are inputs
        the terms of the quads of y, lanes are quads of a row
        products of matrices, for each term one, added to the sums in memory
    weights from the sums

Quads beyond the last are zeros, whatever their patches are. Whether all weights are finite is found on the way.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from pullback.backends.native.kernels.convolution.rows import (
    clear_row,
    evens_and_odds,
    overlapping,
    transpose_rows,
)
from pullback.backends.native.kernels.convolution.winograd.plans import QUAD, TERMS
from pullback.backends.native.kernels.convolution.winograd.transforms import (
    terms_of_patch,
    terms_of_quad,
    window_of_terms,
)
from pullback.backends.native.kernels.convolution.winograd.weight_plans import QuadSumsPlan
from pullback.backends.native.kernels.tiles import Column, Factor, sum_products
from pullback.backends.native.kernels.tiles import Tile as Products
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import Lanes, memory_type

#: How many windows of weights are written together: they are scattered one by one.
_SCATTERED = 4


def write_quad_sums(function: Function, plan: QuadSumsPlan, y: str, x: str, weights: str, scratch: str) -> str:
    """The body of a kernel; gives an i1 that is true where a weight is not finite, or what it is made of."""
    return _Writer(function, plan, y, x, weights, scratch).write()


class _Writer:
    def __init__(self, function: Function, plan: QuadSumsPlan, y: str, x: str, weights: str, scratch: str) -> None:
        self.function = function
        self.plan = plan
        self.sums = plan.sums
        self.lanes = Lanes(function, plan.sums.dtype, plan.lanes)
        self.element = memory_type(plan.sums.dtype)
        self.y = y
        self.x = x
        self.weights = weights
        self.summed = scratch
        self.copy = self._at(self.summed, TERMS * plan.summed)
        self.patch_terms = self._at(self.copy, plan.copied)
        self.quad_terms = self._at(self.patch_terms, TERMS * plan.patch_terms)

    def _at(self, pointer: str, index: Index) -> str:
        return self.function.element(pointer, index, self.element)

    def write(self) -> str:
        """Blocks, sums, weights."""
        function, plan = self.function, self.plan
        clear_row(function, self.lanes, self.summed, TERMS * plan.summed + plan.copied)
        with (
            function.loop(0, self.sums.examples, plan.block[0]) as first,
            function.loop(0, plan.quads[0], plan.block[1]) as start,
        ):
            with function.loop(0, plan.block[0]) as number:
                example = function.add(first, number)
                self._copy_example(example, number, start)
                self._write_quad_terms(example, number, start)
            self._write_patch_terms()
            self._add_products()
        return self._write_weights()

    def _if_present(self, stack: ExitStack, example: Index) -> None:
        """The last block of examples may have fewer."""
        if self.sums.examples % self.plan.block[0]:
            there = self.function.value(f"icmp slt i64 {example}, {self.sums.examples}")
            stack.enter_context(self.function.when(there))

    # --- x ----------------------------------------------------------------------------------------------------------
    def _copy_example(self, example: Index, number: Index, start: Index) -> None:
        function, plan, x, sliding = self.function, self.plan, self.sums.x, self.sums.sliding
        (above, _), (left, _) = sliding.pad
        rows, columns = plan.span
        begin, end = max(0, left), min(columns, sliding.size[1] + left)
        with ExitStack() as stack:
            self._if_present(stack, example)
            index = stack.enter_context(function.loop(0, rows))
            position = function.sub(function.add(function.mul(start, QUAD), index), above)
            target = function.mul(function.offset((number, rows), (index, 1)), columns * plan.ins)
            row = self._at(self.copy, target)
            inside = function.value(f"icmp ult i64 {position}, {sliding.size[0]}")
            with function.when(inside):
                place = function.offset((example, x.examples), (position, x.spatial[0]), (begin - left, x.spatial[1]))
                source, strides = self._at(self.x, place), (x.channels, x.spatial[1])
                turned = self._at(row, begin * plan.ins)
                transpose_rows(function, self.lanes, source, strides, turned, plan.ins, self.sums.ins, end - begin)
            with function.when(function.value(f"xor i1 {inside}, true")):
                clear_row(function, self.lanes, row, columns * plan.ins)

    def _write_patch_terms(self) -> None:
        function, plan, lanes = self.function, self.plan, self.lanes
        (examples, rows), columns = plan.block, plan.quads[1]
        height, width = plan.span
        with (
            function.loop(0, examples) as example,
            function.loop(0, rows) as row,
            function.loop(0, columns) as column,
            function.loop(0, plan.ins, plan.lanes) as channel,
        ):
            corner = function.offset((example, height * width), (row, QUAD * width), (column, QUAD))
            source = self._at(self.copy, function.add(function.mul(corner, plan.ins), channel))
            patch = [[lanes.load(source, (i * width + j) * plan.ins) for j in range(4)] for i in range(4)]
            quad = function.offset((example, rows * columns), (row, columns), (column, 1))
            target = self._at(self.patch_terms, function.add(function.mul(quad, plan.ins), channel))
            self._store_terms(terms_of_patch(lanes, patch), target, plan.patch_terms)

    def _store_terms(self, terms: Sequence[Sequence[str]], target: str, pitch: int) -> None:
        for number, term in enumerate(term for row in terms for term in row):
            self.lanes.store(term, target, number * pitch)

    # --- y ----------------------------------------------------------------------------------------------------------
    def _write_quad_terms(self, example: Index, number: Index, start: Index) -> None:
        function, plan, y = self.function, self.plan, self.sums.y
        rows, columns = plan.block[1], plan.quads[1]
        with function.loop(0, self.sums.outs) as out, function.loop(0, rows) as row:
            here = function.offset((number, rows * columns), (row, columns), (out, plan.quad_pitch))
            target = self._at(self.quad_terms, here)
            source = self._at(self.y, function.mul(out, y.channels))
            lines = [self._line(source, example, function.add(start, row), part) for part in range(QUAD)]
            whole = self.sums.sliding.out[1] // (QUAD * plan.lanes) * plan.lanes
            if whole:
                with function.loop(0, whole, plan.lanes) as column:
                    self._write_quads(lines, column, QUAD * plan.lanes, target)
            if QUAD * whole < self.sums.sliding.out[1]:
                self._write_quads(lines, whole, self.sums.sliding.out[1] - QUAD * whole, target)

    def _line(self, source: str, example: Index, quad: Index, part: int) -> tuple[str, str | None]:
        """A row of y, and an i1 whether it is there, None for yes."""
        function, plan, y, out = self.function, self.plan, self.sums.y, self.sums.sliding.out
        row = function.add(function.mul(quad, QUAD), part)
        there = None
        if QUAD * -(-plan.quads[0] // plan.block[1]) * plan.block[1] > out[0]:
            there = function.value(f"icmp slt i64 {row}, {out[0]}")
            row = function.value(f"select i1 {there}, i64 {row}, i64 0")
        if self.sums.examples % plan.block[0]:
            here = function.value(f"icmp slt i64 {example}, {self.sums.examples}")
            example = function.value(f"select i1 {here}, i64 {example}, i64 0")
            there = here if there is None else function.value(f"and i1 {there}, {here}")
        return self._at(source, function.offset((example, y.examples), (row, y.spatial[0]))), there

    def _write_quads(self, lines: Sequence[tuple[str, str | None]], column: Index, met: int, target: str) -> None:
        lanes, stride = self.lanes, self.sums.y.spatial[1]
        quad = []
        for line, there in lines:
            source = self._at(line, self.function.mul(column, QUAD * stride))
            pair = evens_and_odds(lanes, source, stride, met)
            if there is not None:
                pair = [
                    lanes.function.value(f"select i1 {there}, {lanes.type} {value}, {lanes.type} {lanes.constant(0)}")
                    for value in pair
                ]
            quad.append(pair)
        self._store_terms(terms_of_quad(lanes, quad), self._at(target, column), self.plan.quad_terms)

    # --- the sums ---------------------------------------------------------------------------------------------------
    def _add_products(self) -> None:
        """One product of matrices for each term."""
        function, plan = self.function, self.plan
        with function.loop(0, TERMS) as term:
            channel = 0
            for wide, vectors in plan.panels:
                out, width = 0, vectors * plan.lanes
                for tall, outs in plan.strips:
                    with (
                        function.loop(channel, channel + wide * width, width) as first_in,
                        function.loop(out, out + tall * outs, outs) as first_out,
                    ):
                        self._add_tile(term, first_out, outs, first_in, vectors)
                    out += tall * outs
                channel += wide * width

    def _add_tile(self, term: Index, out: Index, outs: int, channel: Index, vectors: int) -> None:
        function, plan, lanes, dtype = self.function, self.plan, self.lanes, self.sums.dtype
        quads = self._at(self.quad_terms, function.offset((term, plan.quad_terms), (out, plan.quad_pitch)))
        patches = self._at(self.patch_terms, function.offset((term, plan.patch_terms), (channel, 1)))
        summed = self._at(self.summed, function.offset((term, plan.summed), (out, plan.ins), (channel, 1)))
        products = Products(outs, (Column(lanes),) * vectors, plan.depth)
        left, right = Factor(quads, plan.quad_pitch, 1, 0, dtype), Factor(patches, lanes.width, plan.ins, 1, dtype)
        for row, sums in enumerate(sum_products(products, left, right)):
            for vector, value in enumerate(sums):
                place = row * plan.ins + vector * lanes.width
                lanes.store(lanes.add(lanes.load(summed, place), value), summed, place)

    # --- the weights ------------------------------------------------------------------------------------------------
    def _write_weights(self) -> str:
        function, plan, layout = self.function, self.plan, self.sums.weights
        lanes = Lanes(function, self.sums.dtype, _SCATTERED if self.sums.ins >= _SCATTERED else 1)
        doubt = function.slot(lanes.type, lanes.constant(0))
        with function.loop(0, self.sums.outs) as out, overlapping(function, self.sums.ins, lanes.width) as channel:
            source = self._at(self.summed, function.offset((out, plan.ins), (channel, 1)))
            target = self._at(self.weights, function.offset((out, layout.examples), (channel, layout.channels)))
            terms = [[lanes.load(source, (4 * i + j) * plan.summed) for j in range(4)] for i in range(4)]
            total = function.load(lanes.type, doubt)
            for i, row in enumerate(window_of_terms(lanes, terms)):
                for j, weight in enumerate(row):
                    total = lanes.mul_add(weight, lanes.constant(0), total)
                    place = i * layout.spatial[0] + j * layout.spatial[1]
                    lanes.store(weight, target, place, stride=layout.channels)
            function.store(lanes.type, total, doubt)
        return lanes.any_lane(lanes.is_nan(function.load(lanes.type, doubt)))
