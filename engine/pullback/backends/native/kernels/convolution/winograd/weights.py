"""Weights for quads: packed with results side by side, their terms, and how spread the numbers of a window have to be.

Lanes are results. The bound of errors by quads is held against the least that a sum of magnitudes can be (decision 73):

    norm of the numbers of a window * sensitivity <= WORTH * (level * sum of their magnitudes - lack * their norm)

for a level that is chosen: `lack` is the norm of what magnitudes of weights lack to that level, `sensitivity` what errors are in
proportion to. So the square of the sum has to be `least_spread` times the sum of squares.
"""

from collections.abc import Sequence

import numpy as np

from pullback.backends.native.kernels.convolution.rows import clear_row, transpose_rows
from pullback.backends.native.kernels.convolution.winograd.plans import TAPS, TERMS, QuadPlan
from pullback.backends.native.kernels.convolution.winograd.transforms import Matrix, terms_of_window
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import Lanes, memory_type, number

#: How many eps times the sum of magnitudes an error may be.
WORTH = 64

#: Levels that are tried, as parts of the mean magnitude of the weights of a result.
_LEVELS = (0.25, 0.6)

#: What the statistics themselves may be off, by rounding.
_ROUNDED = 1 + 1 / 64


def least_square(dtype: np.dtype[np.generic]) -> float:
    """Squares that are smaller have lost digits."""
    return float(np.finfo(dtype).tiny) * 2.0**16


def write_weights(function: Function, plan: QuadPlan, weights: str, packed: str, terms: str) -> str:
    """Pack them and compute their terms; gives the least spread of a window, infinity where none is enough."""
    return _Writer(function, plan, weights, packed, terms).write()


class _Writer:
    def __init__(self, function: Function, plan: QuadPlan, weights: str, packed: str, terms: str) -> None:
        self.function = function
        self.plan = plan
        self.correlation = plan.correlation
        self.lanes = Lanes(function, plan.correlation.dtype, plan.lanes)
        self.element = memory_type(plan.correlation.dtype)
        self.weights = weights
        self.packed = packed
        self.terms = terms

    def _at(self, pointer: str, index: Index) -> str:
        return self.function.element(pointer, index, self.element)

    def write(self) -> str:
        """Pack, then go through all channels twice: the levels depend on the mean."""
        function, lanes, plan = self.function, self.lanes, self.plan
        self._pack()
        one = lanes.narrowed()
        most = function.slot(lanes.type, lanes.constant(0))
        with function.loop(0, plan.padded_outs, lanes.width) as out:
            sensitivity, mean = self._write_terms(out)
            least = self._least_spread(out, sensitivity, mean)
            before = function.load(lanes.type, most)
            function.store(lanes.type, lanes.select(lanes.compare(">", least, before), least, before), most)
        return one.mul(lanes.largest_lane(function.load(lanes.type, most)), number(_ROUNDED, lanes.dtype))

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
    def _write_terms(self, out: Index) -> tuple[str, str]:
        """Of all channels, for a vector of results; gives the square of the sensitivity, and the mean magnitude."""
        function, lanes, plan = self.function, self.lanes, self.plan
        zero = lanes.constant(0)
        squares = [function.slot(lanes.type, zero) for _ in range(TERMS)]
        total = function.slot(lanes.type, zero)
        with function.loop(0, self.correlation.ins) as channel:
            source = self._at(self.packed, function.offset((channel, TAPS * plan.out_pitch), (out, 1)))
            target = self._at(self.terms, function.offset((channel, plan.out_pitch), (out, 1)))
            window = [[lanes.load(source, tap * plan.out_pitch) for tap in row] for row in plan.window]
            sum_ = function.load(lanes.type, total)
            for weight in (weight for row in window for weight in row):
                sum_ = lanes.add(sum_, lanes.absolute(weight))
            function.store(lanes.type, sum_, total)
            terms = [term for row in terms_of_window(lanes, window) for term in row]
            for place, (term, square) in enumerate(zip(terms, squares, strict=True)):
                lanes.store(term, target, place * plan.weight_terms)
                function.store(lanes.type, lanes.mul_add(term, term, function.load(lanes.type, square)), square)
        norms = [lanes.sqrt(function.load(lanes.type, square)) for square in squares]
        numbers = TAPS * self.correlation.ins
        mean = lanes.mul(function.load(lanes.type, total), lanes.constant(1 / numbers))
        return self._sensitivity([norms[row : row + 4] for row in range(0, TERMS, 4)]), mean

    def _sensitivity(self, norms: Matrix) -> str:
        """The square of the norm of what the terms of a result take from each number of its window.

        A result takes terms 0, 1, 2 or 1, 2, 3 along an axis; they are made of numbers 0 and 2, 1 and 2, 1 and 2, 1 and 3.
        """
        lanes = self.lanes

        def along(values: Sequence[str]) -> list[str]:
            outer = lanes.select(lanes.compare(">", values[0], values[3]), values[0], values[3])
            inner = lanes.add(values[1], values[2])
            return [outer, inner, lanes.add(outer, inner)]

        columns = [along(column) for column in zip(*norms, strict=True)]
        square = lanes.constant(0)
        for row in zip(*columns, strict=True):
            for taken in along(row):
                square = lanes.mul_add(taken, taken, square)
        return square

    # --- spread -----------------------------------------------------------------------------------------------------
    def _least_spread(self, out: Index, sensitivity: str, mean: str) -> str:
        function, lanes, plan = self.function, self.lanes, self.plan
        zero, infinity = lanes.constant(0), lanes.constant(np.inf)
        levels = [lanes.mul(mean, lanes.constant(part)) for part in _LEVELS]
        lacks = [function.slot(lanes.type, zero) for _ in levels]
        with function.loop(0, TAPS * self.correlation.ins) as place:
            weight = lanes.load(self._at(self.packed, function.offset((place, plan.out_pitch), (out, 1))))
            magnitude = lanes.absolute(weight)
            for level, lack in zip(levels, lacks, strict=True):
                missing = lanes.sub(level, magnitude)
                missing = lanes.select(lanes.compare(">", missing, zero), missing, zero)
                function.store(lanes.type, lanes.mul_add(missing, missing, function.load(lanes.type, lack)), lack)
        norm = lanes.mul(lanes.sqrt(sensitivity), lanes.constant(1 / WORTH))
        least = infinity
        for level, lack in zip(levels, lacks, strict=True):
            needed = lanes.div(lanes.add(lanes.sqrt(function.load(lanes.type, lack)), norm), level)
            least = lanes.select(lanes.compare("<", needed, least), needed, least)
        least = lanes.mul(least, least)
        # Without any weight the results are zeros; of tiny ones the products would lose digits.
        none = lanes.select(lanes.compare("==", mean, zero), zero, infinity)
        enough = lanes.compare(">=", sensitivity, lanes.constant(least_square(lanes.dtype)))
        return lanes.select(enough, least, none)
