"""Weights for tiles: packed with results side by side, their terms, and how spread the numbers of a window have to be.

Lanes are results. The bound of errors by Winograd tiles is compared with the least that a sum of magnitudes can be
(decision 73):

    norm of the numbers of a window * sensitivity <= WORTH * (level * sum of their magnitudes - lack * their norm)

for a level that is chosen: `lack` is the norm of what magnitudes of weights lack to that level, `sensitivity` what errors are in
proportion to. So the square of the sum has to be `least_spread` times the sum of squares. Windows at the border of the data
have an outer row or column of zeros: what their weights lack does not count, and less spread is enough.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type, number
from pullback.backends.native.kernels.convolution.row_loops import clear_row, transpose_rows
from pullback.backends.native.kernels.convolution.winograd.plans import TAPS, TERMS, WinogradPlan
from pullback.backends.native.kernels.convolution.winograd.transforms import Matrix, terms_of_window
from pullback.dataclass import dataclass

#: The largest error, in eps times the sum of magnitudes.
WORTH = 64

#: Levels that are tried, as parts of the mean magnitude of the weights of a result.
_LEVELS = (0.25, 0.6)

#: The largest rounding error of the statistics themselves.
_ROUNDED = 1 + 1 / 64


def least_square(dtype: np.dtype[Any]) -> float:
    """Squares that are smaller have lost digits."""
    return float(np.finfo(dtype).tiny) * 2.0**16


#: The edges of windows: True if they lack an outer row, and if they lack an outer column.
EDGES = ((False, False), (False, True), (True, False), (True, True))


def write_weights(function: Function, plan: WinogradPlan, weights: str, memory: str) -> None:
    """The body of a kernel: pack the weights, compute their terms, and the least spread of a window for each of EDGES."""
    _Writer(function, plan, weights, WeightPointers.at(function, plan, memory)).write()


@dataclass(frozen=True, slots=True)
class WeightPointers:
    """Pointers to what is computed from the weights."""

    spreads: str
    """The least spread of a window for each of EDGES, infinity where none is enough."""
    packed: str
    terms: str

    @classmethod
    def at(cls, function: Function, plan: WinogradPlan, memory: str) -> "WeightPointers":
        """The pointers, in `plan.weight_bytes` of memory."""
        element = memory_type(plan.correlation.dtype)
        packed = function.element(memory, plan.line, element)
        return cls(memory, packed, function.element(packed, plan.packed, element))


class _Writer:
    def __init__(self, function: Function, plan: WinogradPlan, weights: str, made: WeightPointers) -> None:
        self.function = function
        self.plan = plan
        self.correlation = plan.correlation
        self.lanes = Lanes(function, plan.correlation.dtype, plan.lanes)
        self.element = memory_type(plan.correlation.dtype)
        self.weights = weights
        self.spreads = made.spreads
        self.packed = made.packed
        self.terms = made.terms

    def _at(self, pointer: str, index: Index) -> str:
        return self.function.element(pointer, index, self.element)

    def write(self) -> None:
        """Pack, then go through all channels twice: the levels depend on the mean."""
        function, lanes, plan = self.function, self.lanes, self.plan
        self._pack()
        one = lanes.narrowed()
        most = [function.slot(lanes.type, lanes.constant(0)) for _ in EDGES]
        with function.loop(0, plan.padded_outs, lanes.width) as out:
            norms, mean = self._write_terms(out)
            for slot, least in zip(most, self._least_spreads(out, norms, mean), strict=True):
                function.store(lanes.type, self._larger(least, function.load(lanes.type, slot)), slot)
        for edge, slot in enumerate(most):
            largest = lanes.largest_lane(function.load(lanes.type, slot))
            one.store(one.mul(largest, number(_ROUNDED, lanes.dtype)), self.spreads, edge)

    def _larger(self, a: str, b: str) -> str:
        return self.lanes.select(self.lanes.compare(">", a, b), a, b)

    def _sum(self, values: Iterable[str]) -> str:
        return reduce(self.lanes.add, values)

    # --- packed -----------------------------------------------------------------------------------------------------
    def _pack(self) -> None:
        function, plan, weights = self.function, self.plan, self.correlation.weights
        clear_row(function, self.lanes, self.packed, plan.packed)
        rows, columns = weights.taps[1:]
        runs = [(0, 3), (1, 3), (2, 3)] if (rows, columns) != (3, 1) else [(0, TAPS)]
        with function.loop(0, self.correlation.ins) as channel:
            source = self._at(self.weights, function.mul(channel, weights.ins))
            target = self._at(self.packed, function.mul(channel, TAPS * plan.out_pitch))
            for row, count in runs:
                here, there = self._at(source, row * rows), self._at(target, 3 * row * plan.out_pitch)
                strides = (weights.outs, columns)
                transpose_rows(function, self.lanes, here, strides, there, plan.out_pitch, self.correlation.outs, count)

    # --- terms ------------------------------------------------------------------------------------------------------
    def _write_terms(self, out: Index) -> tuple[Matrix, str]:
        """Write the terms of all channels for a vector of results; gives the norms of terms and the mean magnitude."""
        function, lanes, plan = self.function, self.lanes, self.plan
        zero = lanes.constant(0)
        squares = [function.slot(lanes.type, zero) for _ in range(TERMS)]
        total = function.slot(lanes.type, zero)
        with function.loop(0, self.correlation.ins) as channel:
            source = self._at(self.packed, function.offset((channel, TAPS * plan.out_pitch), (out, 1)))
            target = self._at(self.terms, function.offset((channel, plan.out_pitch), (out, 1)))
            window = [[lanes.load(source, tap * plan.out_pitch) for tap in row] for row in plan.window]
            magnitudes = self._sum(lanes.absolute(weight) for row in window for weight in row)
            function.store(lanes.type, lanes.add(function.load(lanes.type, total), magnitudes), total)
            terms = [term for row in terms_of_window(lanes, window) for term in row]
            for place, (term, square) in enumerate(zip(terms, squares, strict=True)):
                lanes.store(term, target, place * plan.weight_terms)
                function.store(lanes.type, lanes.mul_add(term, term, function.load(lanes.type, square)), square)
        norms = [lanes.sqrt(function.load(lanes.type, square)) for square in squares]
        numbers = TAPS * self.correlation.ins
        mean = lanes.mul(function.load(lanes.type, total), lanes.constant(1 / numbers))
        return [norms[row : row + 4] for row in range(0, TERMS, 4)], mean

    def _sensitivities(self, norms: Matrix) -> list[str]:
        """Squares of the norms of what the terms of a result take from each number of its window, for each of EDGES.

        A result takes terms 0, 1, 2 or 1, 2, 3 along an axis; they are made of numbers 0 and 2, 1 and 2, 1 and 2, 1 and 3.
        """
        lanes = self.lanes

        def along(values: Sequence[str]) -> list[str]:
            outer, inner = self._larger(values[0], values[3]), lanes.add(values[1], values[2])
            return [outer, inner, lanes.add(outer, inner)]

        taken = [along(row) for row in zip(*(along(column) for column in zip(*norms, strict=True)), strict=True)]
        squares = [[lanes.mul(value, value) for value in row] for row in taken]
        return [
            self._sum(value for row in squares[edge_row:] for value in row[edge_column:])
            for edge_row, edge_column in EDGES
        ]

    # --- spread -----------------------------------------------------------------------------------------------------
    def _least_spreads(self, out: Index, norms: Matrix, mean: str) -> list[str]:
        lanes = self.lanes
        zero, infinity = lanes.constant(0), lanes.constant(np.inf)
        levels = [lanes.mul(mean, lanes.constant(part)) for part in _LEVELS]
        lacks = self._lacks(out, levels)
        # Without any weight the results are zeros; of tiny ones the products would lose digits.
        none = lanes.select(lanes.compare("==", mean, zero), zero, infinity)
        spreads = []
        for edge, square in enumerate(self._sensitivities(norms)):
            sensitivity = lanes.mul(lanes.sqrt(square), lanes.constant(1 / WORTH))
            least = infinity
            for level, lack in zip(levels, lacks, strict=True):
                needed = lanes.div(lanes.add(lanes.sqrt(lack[edge]), sensitivity), level)
                least = lanes.select(lanes.compare("<", needed, least), needed, least)
            enough = lanes.compare(">=", square, lanes.constant(least_square(lanes.dtype)))
            spreads.append(lanes.select(enough, lanes.mul(least, least), none))
        return spreads

    def _lacks(self, out: Index, levels: Sequence[str]) -> list[list[str]]:
        """Sums for each level and each of EDGES: the sum of the squared shortfalls of magnitudes below the level."""
        function, lanes, plan = self.function, self.lanes, self.plan
        zero = lanes.constant(0)
        slots = [[function.slot(lanes.type, zero) for _ in range(TAPS)] for _ in levels]
        with function.loop(0, self.correlation.ins) as channel:
            source = self._at(self.packed, function.offset((channel, TAPS * plan.out_pitch), (out, 1)))
            for tap in range(TAPS):
                magnitude = lanes.absolute(lanes.load(source, tap * plan.out_pitch))
                for level, squares in zip(levels, slots, strict=True):
                    missing = self._larger(lanes.sub(level, magnitude), zero)
                    square = lanes.mul_add(missing, missing, function.load(lanes.type, squares[tap]))
                    function.store(lanes.type, square, squares[tap])
        return [[self._lack(squares, edge) for edge in EDGES] for squares in slots]

    def _lack(self, slots: Sequence[str], edge: tuple[bool, bool]) -> str:
        """The sum over all taps; at an edge the largest of those without its first or its last row or column."""
        values = [self.function.load(self.lanes.type, slot) for slot in slots]
        rows, columns = ([range(2), range(1, 3)] if lacking else [range(3)] for lacking in edge)
        sums = [self._sum(values[3 * i + j] for i in row for j in column) for row in rows for column in columns]
        return reduce(self._larger, sums)
