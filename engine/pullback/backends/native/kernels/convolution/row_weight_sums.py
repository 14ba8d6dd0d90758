"""The gradient of a convolution with respect to its weights (weight_sums.py), of few channels, with vectors along rows.

Every weight is a sum of products of two rows, one of y and one of x at the tap's offset in a padded copy
(`planes.py`). Vectors lie along rows, the last of them masked, so nothing is summed but what belongs to a result.

    for examples, groups:  copy the channels of x
        for tiles of outputs, channels of x, taps of all axes but the last:  sums in registers, added to the weights
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from math import prod
from typing import TypeAlias

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.emission import StoredArray
from pullback.backends.native.kernels.convolution.planes import Planes, clear, fill
from pullback.backends.native.kernels.convolution.row_loops import along, clear_all
from pullback.backends.native.kernels.convolution.sliding_window import batch_axis, forward_axes
from pullback.backends.native.kernels.convolution.weight_sums import WeightSums
from pullback.dataclass import dataclass

#: Sums that are kept in registers, and of one tile's outputs.
_MOST_SUMS, _MOST_OUTS = {512: 24, 256: 10}, 8

#: Cycles to add up the lanes of one sum and to add that to a weight.
_FOLDING = 14


@dataclass(frozen=True, slots=True)
class DottingPlan:
    """A plan of the products: width of vectors, size of tiles, taps that are summed together."""

    sums: WeightSums
    lanes: int
    outs: int
    """Outputs in a tile."""
    taps: int
    """Taps of the last axis that are summed together, or of all axes."""
    joins_axes: bool
    """True if the taps of all axes are summed together."""

    @property
    def planes(self) -> Planes:
        """The copy of the channels of a group of one example."""
        axes = (batch_axis(1), *forward_axes(self.sums.sliding))
        order, line = tuple(range(len(axes))), 64 // self.sums.dtype.itemsize
        return Planes(axes, (1, *self.sums.sliding.out), self.sums.ins, order, line)

    @property
    def cycles(self) -> float:
        """The expected cycles for one example, for choosing how."""
        sums, out = self.sums, self.sums.sliding.out
        vectors = prod(out[:-1]) * -(-out[-1] // self.lanes)
        tiles = sums.groups * -(-sums.outs // self.outs) * sums.ins * prod(sums.sliding.kernel) // self.taps
        per_vector = max(self.outs * self.taps, self.outs + 2 * self.taps, 4) + 2
        folding = _FOLDING * self.outs * self.taps
        return tiles * (vectors * per_vector + folding) + 0.25 * sums.groups * self.planes.size

    @property
    def bytes(self) -> int:
        """Memory that it needs."""
        return (self.planes.size + 4 * max(self.lanes, 16)) * self.sums.dtype.itemsize


def make_dotting_plan(sums: WeightSums, vector_bits: int) -> DottingPlan | None:
    """The plan for a width of vectors in bits; None where registers do not hold the taps of a row."""
    lanes = max(1, vector_bits // (8 * sums.dtype.itemsize))
    most, kernel = _MOST_SUMS.get(vector_bits, 8), sums.sliding.kernel
    plans = [
        DottingPlan(sums, lanes, outs, taps, joins)
        for taps, joins in ((kernel[-1], False), (prod(kernel), True))
        for outs in range(1, min(sums.outs, _MOST_OUTS) + 1)
        if outs * taps <= most and sums.outs % outs == 0
    ]
    return min(plans, key=lambda plan: plan.cycles, default=None)


def write_dots(function: Function, plan: DottingPlan, y: str, x: str, weights: str, scratch: str) -> None:
    """The body of a kernel."""
    _Writer(function, plan, y, x, weights, scratch).write()


class _Writer:
    def __init__(self, function: Function, plan: DottingPlan, y: str, x: str, weights: str, scratch: str) -> None:
        self.function = function
        self.plan = plan
        self.sums = plan.sums
        self.planes = plan.planes
        self.lanes = Lanes(function, plan.sums.dtype, plan.lanes)
        self.element = memory_type(plan.sums.dtype)
        self.y = y
        self.x = x
        self.weights = weights
        self.copy = scratch
        strides = (0, *plan.sums.weights.spatial)
        self.offsets = [
            [(self.planes.place(number, tap), strides[number] * tap.index) for tap in axis.courses[0].taps]
            for number, axis in enumerate(self.planes.axes)
        ]

    def _at(self, pointer: str, index: Index) -> str:
        return self.function.element(pointer, index, self.element)

    def write(self) -> None:
        """Write the loops over examples, groups and tiles."""
        function, plan, sums = self.function, self.plan, self.sums
        if self.planes.has_zeros:
            clear(function, self.lanes, self.planes, self.copy)
        shape = (sums.groups * sums.outs, sums.ins, *sums.sliding.kernel)
        clear_all(function, StoredArray(self.weights, shape, sums.weights.strides, sums.dtype))
        with ExitStack() as stack:
            example = stack.enter_context(function.loop(0, sums.examples))
            group = stack.enter_context(function.loop(0, sums.groups))
            places = (example, sums.x.examples), (group, sums.ins * sums.x.channels)
            starts = (0,) * len(self.planes.axes)
            fill(
                function, self.lanes, sums.x, self.planes, self._at(self.x, function.offset(*places)), starts, self.copy
            )
            out = stack.enter_context(function.loop(0, sums.outs, plan.outs))
            channel = stack.enter_context(function.loop(0, sums.ins))
            own = function.add(function.mul(group, sums.outs), out)
            y = self._at(self.y, function.offset((example, sums.y.examples), (own, sums.y.channels)))
            copy = self._at(self.copy, function.mul(channel, self.planes.channel_pitch))
            weights = self._at(
                self.weights, function.offset((own, sums.weights.examples), (channel, sums.weights.channels))
            )
            with self._each_row_of_taps() as (copy_offset, weights_offset):
                self._sum(y, self._at(copy, copy_offset), self._at(weights, weights_offset))

    def _joined(self) -> list[list[tuple[int, int]]]:
        """Taps that are summed together, along the axes that have them."""
        return self.offsets if self.plan.joins_axes else self.offsets[-1:]

    @contextmanager
    def _each_row_of_taps(self) -> Iterator[tuple[Index, Index]]:
        """Go through the rows of taps, with the offset of each in the copy and in the weights."""
        function = self.function
        rows = _added(self.offsets[: len(self.offsets) - len(self._joined())])
        if len(rows) == 1:
            yield rows[0]
            return
        numbers = ", ".join(f"i64 {number}" for row in rows for number in row)
        table = function.module.constant(f"[{2 * len(rows)} x i64]", f"[{numbers}]")
        with function.loop(0, len(rows)) as row:
            entry = function.element(table, function.mul(row, 2), "i64")
            yield function.load("i64", entry), function.load("i64", function.element(entry, 1, "i64"))

    def _sum(self, y: str, copy: str, weights: str) -> None:
        """Sums of one tile over the results of one example, added to the weights."""
        function, lanes, sums = self.function, self.lanes, self.sums
        taps, outs = _added(self._joined()), range(self.plan.outs)
        one, zero = lanes.narrowed(), lanes.constant(0)
        slots = [[function.slot(lanes.type, zero) for _ in taps] for _ in outs]
        with ExitStack() as stack:
            for axis, count in enumerate(sums.sliding.out[:-1]):
                index = stack.enter_context(function.loop(0, count))
                y = self._at(y, function.mul(index, sums.y.spatial[axis]))
                copy = self._at(copy, function.mul(index, self.planes.pitches[axis + 1]))
            stride = sums.y.spatial[-1]

            def add(index: Index, active: int | None) -> None:
                own = [(self._at(y, function.mul(index, stride)), out * sums.y.channels, stride) for out in outs]
                inputs = [(self._at(copy, index), copy_offset, 1) for copy_offset, _ in taps]
                self._add_products(slots, own, inputs, active)

            along(function, lanes, sums.sliding.out[-1], add)
        for out in outs:
            for number, (_, weights_offset) in enumerate(taps):
                place = weights_offset + out * sums.weights.examples
                term = lanes.sum_lanes(function.load(lanes.type, slots[out][number]))
                one.store(one.add(one.load(weights, place), term), weights, place)

    def _add_products(
        self, slots: list[list[str]], own: Sequence["_Vector"], inputs: Sequence["_Vector"], active: int | None
    ) -> None:
        """Each of y's times each of x's; the fewer stay in registers beside the sums, the others are read one by one."""
        function, lanes = self.function, self.lanes

        def read(vector: _Vector) -> str:
            pointer, index, stride = vector
            return lanes.load(pointer, index, stride=stride, active=active)

        fewer_inputs = len(inputs) <= len(own)
        kept, others = (inputs, own) if fewer_inputs else (own, inputs)
        values = [read(vector) for vector in kept]
        for number, vector in enumerate(others):
            other = read(vector)
            for position, value in enumerate(values):
                slot = slots[number][position] if fewer_inputs else slots[position][number]
                function.store(lanes.type, lanes.mul_add(other, value, function.load(lanes.type, slot)), slot)


#: A pointer, an index from it, and the distance of neighbours.
_Vector: TypeAlias = tuple[str, Index, int]


def _added(along_axes: list[list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Offsets of all combinations of taps."""
    return [(sum(a for a, _ in taps), sum(b for _, b in taps)) for taps in product(*along_axes)]
