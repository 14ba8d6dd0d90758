"""Pooling of windows that follow each other and are two numbers wide, from and to where the data lies.

Two vectors of a row are taken apart into the first and the second numbers of a vector of windows; what is spread back is put
together again in the same way. So nothing is copied, and each number is read and written once.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from itertools import product
from math import prod

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.emission import StoredArray
from pullback.backends.native.kernels.convolution.correlation import Layout
from pullback.backends.native.kernels.convolution.row_loops import along, clear_all, evens_and_odds, interleaved
from pullback.backends.native.kernels.pooling_problem import Pooling
from pullback.core.primitive import Primitive
from pullback.rules.pooling import max_pool, max_select, mean_pool, mean_spread

#: Windows of more elements are not written out.
_MOST_ELEMENTS = 9

_PAIR = 2


def is_in_pairs(pooling: Pooling) -> bool:
    """True if it is computed here: nothing is around the data, and rows of it have no gaps."""
    sliding = pooling.sliding
    if pooling.primitive is max_select or sliding.kernel != sliding.stride or sliding.kernel[-1] != _PAIR:
        return False
    inside = all(
        low == 0 and window * count <= size
        for window, count, size, (low, _) in zip(sliding.kernel, sliding.out, sliding.size, sliding.pad, strict=True)
    )
    rows = [pooling.operands[0]] if _pools(pooling) else [*pooling.operands[1:2], pooling.result]
    return inside and prod(sliding.kernel) <= _MOST_ELEMENTS and all(layout.spatial[-1] == 1 for layout in rows)


def _pools(pooling: Pooling) -> bool:
    return pooling.primitive in (mean_pool, max_pool)


def write_pairs(function: Function, pooling: Pooling, pointers: Sequence[str], result: StoredArray) -> None:
    """The body of a kernel; the pointers are those of the operands and of the result."""
    sliding = pooling.sliding
    writer = _Writer(function, pooling, pointers)
    covered = tuple(window * count for window, count in zip(sliding.kernel, sliding.out, strict=True))
    if not _pools(pooling) and sliding.size != covered:
        clear_all(function, replace(result, pointer=writer.result))
    counts = (pooling.examples, pooling.channels, *sliding.out[:-1])
    with ExitStack() as stack:
        outer = [stack.enter_context(function.loop(0, count)) for count in counts]
        along(function, writer.lanes, sliding.out[-1], lambda index, active: writer.write((*outer, index), active))


class _Writer:
    def __init__(self, function: Function, pooling: Pooling, pointers: Sequence[str]) -> None:
        self.function = function
        self.pooling = pooling
        self.lanes = Lanes(function, pooling.dtype, max(1, function.module.vector_bits // (8 * pooling.dtype.itemsize)))
        *self.operands, self.result = pointers[: len(pooling.operands) + 1]

    def write(self, windows: Sequence[Index], active: int | None) -> None:
        """A vector of windows, from the first."""
        lanes, pooling, size = self.lanes, self.pooling, prod(self.pooling.sliding.kernel)
        if _pools(pooling):
            value = _pooled(lanes, self._numbers(0, windows, active), pooling.primitive)
            start, stride = self._start(self.result, pooling.result, windows), pooling.result.spatial[-1]
            lanes.store(value, start, stride=stride, active=active)
        elif pooling.primitive is mean_spread:
            share = lanes.div(self._of_windows(0, windows, active), lanes.constant(size))
            self._spread([share] * size, windows, active)
        else:
            v, y = (self._of_windows(operand, windows, active) for operand in (0, 2))
            self._spread(_shared(lanes, v, self._numbers(1, windows, active), y), windows, active)

    def _start(self, pointer: str, layout: Layout, places: Sequence[Index]) -> str:
        offset = self.function.offset(*zip(places, layout.strides, strict=True))
        return self.function.element(pointer, offset, memory_type(self.lanes.dtype))

    def _of_windows(self, operand: int, windows: Sequence[Index], active: int | None) -> str:
        """The numbers of an operand, one for each window, for these windows."""
        layout = self.pooling.operands[operand]
        start = self._start(self.operands[operand], layout, windows)
        return self.lanes.load(start, stride=layout.spatial[-1], active=active)

    def _rows(self, pointer: str, layout: Layout, windows: Sequence[Index]) -> list[str]:
        """Pointers to the rows of the windows."""
        window, function = self.pooling.sliding.kernel, self.function
        places = [function.mul(index, step) for index, step in zip(windows, (1, 1, *window), strict=True)]
        start = self._start(pointer, layout, places)
        return [
            function.element(start, sum(map(int.__mul__, part, layout.spatial)), memory_type(self.lanes.dtype))
            for part in product(*map(range, window[:-1]))
        ]

    def _numbers(self, operand: int, windows: Sequence[Index], active: int | None) -> list[str]:
        """The elements of the windows, in their order."""
        rows = self._rows(self.operands[operand], self.pooling.operands[operand], windows)
        count = _PAIR * (active or self.lanes.width)
        return [number for row in rows for number in evens_and_odds(self.lanes, row, 1, count)]

    def _spread(self, shares: Sequence[str], windows: Sequence[Index], active: int | None) -> None:
        lanes, width, count = self.lanes, self.lanes.width, _PAIR * (active or self.lanes.width)
        for number, row in enumerate(self._rows(self.result, self.pooling.result, windows)):
            pair = shares[_PAIR * number : _PAIR * (number + 1)]
            for half, value in enumerate(interleaved(lanes, *pair)):
                if count > half * width:
                    lanes.store(value, row, half * width, active=min(width, count - half * width))


def _pooled(lanes: Lanes, numbers: Sequence[str], primitive: Primitive) -> str:
    if primitive is max_pool:
        return reduce(lambda most, number: lanes.intrinsic("maximum", most, number), numbers)
    return lanes.div(reduce(lanes.add, numbers), lanes.constant(len(numbers)))


def divided_by_ties(lanes: Lanes, value: str, ties: str, y: str) -> str:
    """A value of windows over the number of elements that are their maximum y; of NaN it is NaN, unless it is zero."""
    is_zero = lanes.compare("==", value, lanes.constant(0))
    return lanes.select(is_zero, value, lanes.div(value, lanes.select(lanes.is_nan(y), y, ties)))


def _shared(lanes: Lanes, v: str, numbers: Sequence[str], y: str) -> list[str]:
    """Equal parts for those that are the maximum, as a NaN always is; of NaN they are NaN."""
    zero, one = lanes.constant(0), lanes.constant(1)
    hits = [
        lanes.function.value(f"or {lanes.mask_type} {lanes.compare('==', x, y)}, {lanes.is_nan(x)}") for x in numbers
    ]
    part = divided_by_ties(lanes, v, reduce(lanes.add, [lanes.select(hit, one, zero) for hit in hits]), y)
    return [lanes.select(hit, part, zero) for hit in hits]
