"""A correlation by Winograd tiles, as a kernel.

    for blocks of examples and rows:  copy the block with its zeros;  which tiles are in doubt
        for panels of tiles:  the terms of their input tiles, products with those of weights, tiles from the sums
        tiles in doubt, one by one and directly
        the rows of the block to where they belong

Weights are packed and transformed before, by a kernel of their own. Lanes are tiles. Terms are written just as the products read them. A tile with a result that is not finite is in doubt, too.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.kernels.convolution.planes import fill
from pullback.backends.native.kernels.convolution.row_loops import clear_row, copy_row, interleaved, overlapping
from pullback.backends.native.kernels.convolution.tiles import Tile
from pullback.backends.native.kernels.convolution.winograd.direct_tiles import write_tiles_in_doubt
from pullback.backends.native.kernels.convolution.winograd.guard import count_doubts, set_doubts, write_doubts
from pullback.backends.native.kernels.convolution.winograd.packed_weights import WeightPointers
from pullback.backends.native.kernels.convolution.winograd.plans import TERMS, TILE, WinogradPlan
from pullback.backends.native.kernels.convolution.winograd.transforms import terms_of_input, tile_of_terms
from pullback.backends.native.kernels.tiles import Column, Factor, sum_products
from pullback.backends.native.kernels.tiles import Tile as Products

#: Products of so many channels are added up apart: the errors of equal terms grow with their number.
_CHAIN = 16

#: Panels with more of their tiles in doubt have all of them computed one by one.
_MOST_IN_DOUBT = 0.25


def write_winograd(function: Function, plan: WinogradPlan, made: str, source: str, target: str, scratch: str) -> None:
    """The body of a kernel; `made` is what `write_weights` has made."""
    _Writer(function, plan, made, source, target, scratch).write()


class _Writer:
    def __init__(
        self, function: Function, plan: WinogradPlan, made: str, source: str, target: str, scratch: str
    ) -> None:
        self.function = function
        self.plan = plan
        self.correlation = plan.correlation
        self.lanes = Lanes(function, plan.correlation.dtype, plan.lanes)
        self.element = memory_type(plan.correlation.dtype)
        self.made = WeightPointers.at(function, plan, made)
        self.source = source
        self.target = target
        self.copy = scratch
        self.measures = self._at(self.copy, plan.copied)
        self.doubts = self._at(self.measures, 2 * plan.measured)
        self.lines = self._at(self.doubts, plan.doubts)
        self.input_terms = self._at(self.lines, plan.lines)
        self.output_terms = self._at(self.input_terms, TERMS * plan.input_terms)

    def _at(self, pointer: str, index: Index) -> str:
        return self.function.element(pointer, index, self.element)

    def write(self) -> None:
        """Write the loops over blocks, panels and rows."""
        function, plan, correlation = self.function, self.plan, self.correlation
        clear_row(function, self.lanes, self.copy, plan.copied + 2 * plan.measured)
        with ExitStack() as stack:
            starts = [
                stack.enter_context(overlapping(function, axis.count, count))
                for axis, count in zip(plan.planes.axes, plan.block, strict=True)
            ]
            fill(function, self.lanes, correlation.source, plan.planes, self.source, starts, self.copy)
            write_doubts(function, plan, self.copy, self.measures, self.made.spreads, self.doubts)
            first = 0
            for tile, panels in plan.panels:
                length = tile.vectors * plan.lanes
                with function.loop(first, first + panels * length, length) as start:
                    self._write_panel(start, tile)
                first += panels * length
            write_tiles_in_doubt(function, plan, self.copy, self.made.packed, self.doubts, self.lines)
            self._write_rows(starts)

    # --- a panel ----------------------------------------------------------------------------------------------------
    def _write_panel(self, start: Index, tile: Tile) -> None:
        function, one = self.function, self.lanes.narrowed()
        doubts = self._at(self.doubts, start)
        count = count_doubts(self.lanes, doubts, tile.vectors)
        most = one.constant(_MOST_IN_DOUBT * tile.vectors * self.lanes.width)
        with function.when(one.compare("<=", count, most)):
            self._write_input_terms(start, tile.vectors)
            self._write_products(tile.outs, tile.vectors)
            self._write_tiles(start, tile.vectors)
        with function.when(one.compare(">", count, most)):
            set_doubts(self.lanes, doubts, tile.vectors)

    def _store_terms(self, lanes: Lanes, terms: Sequence[Sequence[str]], target: str, pitch: int) -> None:
        for number, term in enumerate(term for row in terms for term in row):
            lanes.store(term, target, number * pitch)

    def _write_input_terms(self, start: Index, vectors: int) -> None:
        function, lanes, planes = self.function, self.lanes, self.plan.planes
        rows, columns = self.plan.offsets
        with function.loop(0, self.correlation.ins) as channel:
            source = self._at(self._at(self.copy, function.mul(channel, planes.channel_pitch)), start)
            target = self._at(self.input_terms, function.mul(channel, vectors * lanes.width))
            with function.loop(0, vectors * lanes.width, lanes.width) as place:
                here = self._at(source, place)
                input_tile = [[lanes.load(here, row + column) for column in columns] for row in rows]
                self._store_terms(
                    lanes, terms_of_input(lanes, input_tile), self._at(target, place), self.plan.input_terms
                )

    def _write_products(self, outs: int, vectors: int) -> None:
        """Write a product of matrices for each term."""
        function, plan, lanes = self.function, self.plan, self.lanes
        length = vectors * lanes.width
        with function.loop(0, TERMS) as term, overlapping(function, self.correlation.outs, outs) as out:
            weights = self._at(self.made.terms, function.offset((term, plan.weight_terms), (out, 1)))
            input_tiles = self._at(self.input_terms, function.mul(term, plan.input_terms))
            totals = self._sum_chains(outs, vectors, weights, input_tiles)
            tiles = self._at(self.output_terms, function.offset((term, plan.output_terms), (out, length)))
            for row, values in enumerate(totals):
                for vector, value in enumerate(values):
                    lanes.store(value, tiles, row * length + vector * lanes.width)

    def _sum_chains(self, outs: int, vectors: int, weights: str, input_tiles: str) -> Sequence[Sequence[str]]:
        function, plan, lanes, dtype = self.function, self.plan, self.lanes, self.correlation.dtype
        length = vectors * lanes.width

        def add_up(channel: Index, steps: int) -> Sequence[Sequence[str]]:
            left = Factor(self._at(weights, function.mul(channel, plan.out_pitch)), 1, plan.out_pitch, 0, dtype)
            right = Factor(self._at(input_tiles, function.mul(channel, length)), lanes.width, length, 1, dtype)
            return sum_products(Products(outs, (Column(lanes),) * vectors, steps), left, right)

        whole, rest = divmod(self.correlation.ins, _CHAIN)
        if whole <= 1 and not (whole and rest):
            return add_up(0, self.correlation.ins)
        slots = [[function.slot(lanes.type, lanes.constant(0)) for _ in range(vectors)] for _ in range(outs)]

        def add(sums: Sequence[Sequence[str]]) -> None:
            for row, values in zip(slots, sums, strict=True):
                for slot, value in zip(row, values, strict=True):
                    function.store(lanes.type, lanes.add(function.load(lanes.type, slot), value), slot)

        with function.loop(0, whole * _CHAIN, _CHAIN) as channel:
            add(add_up(channel, _CHAIN))
        if rest:
            add(add_up(whole * _CHAIN, rest))
        return [[function.load(lanes.type, slot) for slot in row] for row in slots]

    def _write_tiles(self, start: Index, vectors: int) -> None:
        """Transform sums of products to lines of results, which alternate between even and odd ones of a row."""
        function, plan, lanes = self.function, self.plan, self.lanes
        width = lanes.width
        with function.loop(0, self.correlation.outs) as out:
            source = self._at(self.output_terms, function.mul(out, vectors * width))
            target = self._at(self.lines, function.mul(out, TILE * plan.row_pitch))
            target = self._at(target, function.mul(start, TILE))
            with function.loop(0, vectors * width, width) as place:
                source, target = self._at(source, place), self._at(target, function.mul(place, TILE))
                doubts = self._at(self.doubts, function.add(start, place))
                terms = [
                    [lanes.load(source, (4 * row + column) * plan.output_terms) for column in range(4)]
                    for row in range(4)
                ]
                doubt = lanes.load(doubts)
                for row, (even, odd) in enumerate(tile_of_terms(lanes, terms)):
                    for value in (even, odd):
                        doubt = lanes.mul_add(value, lanes.constant(0), doubt)
                    for half, both in enumerate(interleaved(lanes, even, odd)):
                        lanes.store(both, target, row * plan.row_pitch + half * width)
                lanes.store(doubt, doubts)

    # --- results ----------------------------------------------------------------------------------------------------
    def _write_rows(self, starts: Sequence[Index]) -> None:
        """Copy results from lines to the target, without the elements between rows."""
        function, plan = self.function, self.plan
        layout, (_, rows, columns) = self.correlation.target, self.correlation.axes
        pitches = plan.planes.pitches
        with (
            function.loop(0, self.correlation.outs) as out,
            function.loop(0, plan.block[0]) as example,
            function.loop(0, plan.block[1]) as tile,
            function.loop(0, TILE) as part,
        ):
            row = function.add(function.mul(function.add(starts[1], tile), TILE), part)
            line = self._at(self.lines, function.offset((out, TILE * plan.row_pitch), (part, plan.row_pitch)))
            line = self._at(line, function.mul(function.offset((example, pitches[0]), (tile, pitches[1])), TILE))
            place = function.offset(
                (function.add(starts[0], example), layout.examples), (out, layout.channels), (row, layout.spatial[0])
            )
            with ExitStack() as stack:
                if rows.count % TILE:
                    stack.enter_context(function.when(function.value(f"icmp slt i64 {row}, {rows.count}")))
                copy_row(function, self.lanes, line, 1, self._at(self.target, place), layout.spatial[1], columns.count)
