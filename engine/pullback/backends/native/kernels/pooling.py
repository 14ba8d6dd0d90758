"""Pooling, and what belongs to the derivatives of it: the mean or the maximum of windows, channel by channel.

Data is copied with what is around it, as for convolutions (`kernels/convolution/planes.py`), so that every element of the
windows of a row of results is one vector of neighbours, whatever the stride. What is spread back from windows is added up
in such a copy, and then written where it belongs. Windows in pairs need no copy (`pooling_pairs.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from math import inf, prod

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.emission import Emission, Site, StoredArray, emits, why_not_floats
from pullback.backends.native.kernels.convolution.correlation import Layout
from pullback.backends.native.kernels.convolution.planes import fill, spread
from pullback.backends.native.kernels.convolution.row_loops import along, clear_all, clear_row
from pullback.backends.native.kernels.convolution.sliding_window import Axis
from pullback.backends.native.kernels.pooling_pairs import divided_by_ties, is_in_pairs, write_pairs
from pullback.backends.native.kernels.pooling_problem import Pooling
from pullback.core.types import Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Node
from pullback.rules.pooling import max_pool, max_select, max_spread, mean_pool, mean_spread
from pullback.rules.sliding import SlidingWindow

#: Windows of more elements than this are walked by a loop.
_UNROLLED_WINDOW = 9

#: The number of padded copies of one channel that each primitive keeps; shares and maxima of windows are copies too.
_COPIES = {mean_pool: 1, max_pool: 1, mean_spread: 2, max_select: 2, max_spread: 4}

#: The number of the copy with the shares, by whether they are those of maxima.
_SHARES = {False: 1, True: 2}


def _size(node: Node) -> Shape:
    """Spatial sizes of the data."""
    params = dict(node.params)
    if "size" in params:
        size: Shape = params["size"]
        return size
    return node.inputs[0 if len(node.inputs) == 1 else 1].type.shape[2:]


def _pooling(node: Node, operands: Sequence[StoredArray], result: StoredArray) -> Pooling:
    params = dict(node.params)
    window = params["window"]
    sliding = SlidingWindow(_size(node), window, params["stride"], params["pad"], (1,) * len(window))
    layouts = tuple(map(Layout.of, operands))
    return Pooling(node.primitive, sliding, layouts, Layout.of(result), result.shape[0], result.shape[1], result.dtype)


def _scratch(node: Node, vector_bits: int) -> int:
    operands = [StoredArray.in_order("", atom.type) for atom in node.inputs]
    result = StoredArray.in_order("", node.outputs[0].type)
    if not all(operand.size for operand in (*operands, result)):
        return 0
    pooling = _pooling(node, operands, result)
    return _COPIES[node.primitive] * pooling.copy_size(vector_bits) * result.dtype.itemsize


@emits(mean_pool, max_pool, mean_spread, max_select, max_spread, supports=why_not_floats, scratch=_scratch)
def emit_pooling(emission: Emission, node: Node, site: Site) -> None:
    """Emit a pooling or a derivative of it."""
    (result,) = site.results
    if not all(operand.size for operand in (*site.operands, result)):
        return
    pooling = _pooling(node, site.operands, result)

    def build(function: Function, pointers: Sequence[str]) -> None:
        if is_in_pairs(pooling):
            write_pairs(function, pooling, pointers, result)
        else:
            _Writer(function, pooling, emission.vector_bits, pointers).write(result)

    pointers = [*(operand.pointer for operand in site.operands), result.pointer, site.scratch]
    emission.kernel(pooling, node.primitive.name, pointers, build)


class _Writer:
    def __init__(self, function: Function, pooling: Pooling, vector_bits: int, pointers: Sequence[str]) -> None:
        self.function = function
        self.pooling = pooling
        self.planes = pooling.planes
        self.sliding = pooling.sliding
        self.lanes = Lanes(function, pooling.dtype, max(1, vector_bits // (8 * pooling.dtype.itemsize)))
        self.element = memory_type(pooling.dtype)
        *self.operands, self.result, scratch = pointers
        self.copies = [
            self._at(scratch, number * pooling.copy_size(vector_bits)) for number in range(_COPIES[pooling.primitive])
        ]
        axes = enumerate(self.planes.axes)
        offsets = [[self.planes.place(number, tap) for tap in axis.courses[0].taps] for number, axis in axes]
        self.taps = [sum(places) for places in product(*offsets)]

    def _at(self, pointer: str, index: Index) -> str:
        return self.function.element(pointer, index, self.element)

    @property
    def _spreads(self) -> bool:
        return self.pooling.primitive in (mean_spread, max_spread)

    # --- the whole --------------------------------------------------------------------------------------------------
    def write(self, result: StoredArray) -> None:
        """Channel by channel: the copies, rows of results, and back what is spread."""
        function, pooling = self.function, self.pooling
        for number, around in enumerate(self._around()):
            self._set(self.copies[number], around)
        if self._spreads and not all(map(_covers, self.planes.axes)):
            clear_all(function, replace(result, pointer=self.result))
        with function.loop(0, pooling.examples) as example, function.loop(0, pooling.channels) as channel:
            operands = [
                self._at(pointer, function.offset((example, layout.examples), (channel, layout.channels)))
                for pointer, layout in zip(self.operands, pooling.operands, strict=True)
            ]
            own = function.offset((example, pooling.result.examples), (channel, pooling.result.channels))
            target = self._at(self.result, own)
            starts = (0,) * len(self.planes.axes)
            for number, operand in self._copied().items():
                layout = pooling.operands[operand]
                fill(function, self.lanes, layout, self.planes, operands[operand], starts, self.copies[number])
            if self._spreads:
                self._spread(operands)
                spread(function, self.lanes, pooling.result, self.planes, self.copies[0], starts, target)
            else:
                self._pool(operands, target)

    def _around(self) -> list[float]:
        """The padding around each copy."""
        around = {max_pool: [-inf], max_select: [0.0, -inf], max_spread: [0.0, -inf, 0.0, 0.0], mean_spread: [0.0, 0.0]}
        return around.get(self.pooling.primitive, [0.0])

    def _copied(self) -> dict[int, int]:
        """The number of the copy of each operand that is copied."""
        return {mean_spread: {}, max_select: {0: 0, 1: 1}, max_spread: {1: 1}}.get(self.pooling.primitive, {0: 0})

    def _set(self, copy: str, value: float) -> None:
        function, lanes = self.function, self.lanes
        number = lanes.constant(value)
        along(function, lanes, self.planes.size, lambda k, active: lanes.store(number, copy, k, active=active))

    # --- windows ----------------------------------------------------------------------------------------------------
    def _each_vector(self, operands: Sequence[str], body: Callable[["_Place"], None]) -> None:
        """Vectors of windows, row by row; the operands are those of the channel."""
        function, pooling = self.function, self.pooling
        with ExitStack() as stack:
            indices = [stack.enter_context(function.loop(0, count)) for count in self.sliding.out[:-1]]
            place = function.offset(*zip(indices, self.planes.pitches[1:-1], strict=True))
            copies = [self._at(copy, place) for copy in self.copies]

            def vector(index: Index, active: int | None) -> None:
                places = (*indices, index)
                here = [self._at(copy, index) for copy in copies]
                body(_Place(self.lanes, operands, pooling.operands, places, here, active))

            along(function, self.lanes, self.sliding.out[-1], vector)

    def _pool(self, operands: Sequence[str], target: str) -> None:
        """Results of windows."""
        lanes, layout = self.lanes, self.pooling.result

        def write(place: _Place) -> None:
            value, index = self._value(place), self.function.offset(*zip(place.indices, layout.spatial, strict=True))
            lanes.store(value, target, index, stride=layout.spatial[-1], active=place.active)

        self._each_vector(operands, write)

    def _value(self, place: "_Place") -> str:
        lanes, primitive, zero, copy = self.lanes, self.pooling.primitive, self.lanes.constant(0), place.copies[0]
        if primitive is mean_pool:
            sum_ = self._fold(zero, lambda tap, sum_: lanes.add(sum_, lanes.load(copy, tap)))
            return lanes.div(sum_, lanes.constant(prod(self.sliding.kernel)))
        if primitive is max_pool:
            lowest = lanes.constant(-inf)
            return self._fold(lowest, lambda tap, most: lanes.intrinsic("maximum", most, lanes.load(copy, tap)))
        y = place.read(2)
        moved = self._fold(
            zero, lambda tap, sum_: lanes.add(sum_, _of_largest(lanes, place.copies, tap, y, lanes.load(copy, tap)))
        )
        return divided_by_ties(lanes, moved, self._count(place, y), y)

    def _count(self, place: "_Place", y: str) -> str:
        """The number of elements of each window that are its maximum."""
        zero, one = self.lanes.constant(0), self.lanes.constant(1)
        return self._fold(
            zero, lambda tap, sum_: self.lanes.add(sum_, _of_largest(self.lanes, place.copies, tap, y, one))
        )

    def _spread(self, operands: Sequence[str]) -> None:
        """The shares of windows, added to their elements.

        Tap by tap, for neighbouring taps add to the same elements; and all windows as one line, in which the share of what
        lies between rows is 0.
        """
        function, lanes, is_largest = self.function, self.lanes, self.pooling.primitive is max_spread

        def share(place: _Place) -> None:
            v = place.read(0)
            if is_largest:
                y = place.read(2)
                lanes.store(y, place.copies[3])
                own = divided_by_ties(lanes, v, self._count(place, y), y)
            else:
                own = lanes.div(v, lanes.constant(prod(self.sliding.kernel)))
            lanes.store(own, place.copies[_SHARES[is_largest]], active=place.active)

        self._each_vector(operands, share)
        clear_row(function, lanes, self.copies[0], self.planes.size)
        length = 1 + sum(
            (count - 1) * pitch for count, pitch in zip(self.sliding.out, self.planes.pitches[1:], strict=True)
        )
        short = replace(lanes, width=min(lanes.width, 1 << (length.bit_length() - 1)))
        for tap in self._each_tap(unrolled=1):
            with function.loop(0, length, short.width) as index:
                here = [self._at(copy, index) for copy in self.copies]
                own = short.load(here[_SHARES[is_largest]])
                if is_largest:
                    own = _of_largest(short, here, tap, short.load(here[3]), own)
                short.store(short.add(short.load(here[0], tap), own), here[0], tap)

    def _each_tap(self, *, unrolled: int = _UNROLLED_WINDOW) -> Iterator[Index]:
        """Go through the elements of a window, with the offset of each from the first."""
        function, taps = self.function, self.taps
        if len(taps) <= unrolled:
            yield from taps
            return
        numbers = ", ".join(f"i64 {tap}" for tap in taps)
        table = function.module.constant(f"[{len(taps)} x i64]", f"[{numbers}]")
        with function.loop(0, len(taps)) as number:
            yield function.load("i64", function.element(table, number, "i64"))

    def _fold(self, first: str, step: Callable[[Index, str], str]) -> str:
        """A value over the elements of the windows, in their order."""
        slot = self.function.slot(self.lanes.type, first)
        for tap in self._each_tap():
            value = step(tap, self.function.load(self.lanes.type, slot))
            self.function.store(self.lanes.type, value, slot)
        return self.function.load(self.lanes.type, slot)


@dataclass(frozen=True, slots=True)
class _Place:
    """A vector of windows: their numbers along each axis, and what their first elements are in the copies."""

    lanes: Lanes
    operands: Sequence[str]
    layouts: Sequence[Layout]
    indices: tuple[Index, ...]
    copies: Sequence[str]
    active: int | None

    def read(self, operand: int) -> str:
        """The numbers of an operand, one for each window, for these windows."""
        spatial = self.layouts[operand].spatial
        index = self.lanes.function.offset(*zip(self.indices, spatial, strict=True))
        return self.lanes.load(self.operands[operand], index, stride=spatial[-1], active=self.active)


def _of_largest(lanes: Lanes, copies: Sequence[str], tap: Index, y: str, value: str) -> str:
    """A value where an element of the windows is their maximum, as a NaN always is, else 0."""
    x = lanes.load(copies[1], tap)
    is_hit = lanes.function.value(f"or {lanes.mask_type} {lanes.compare('==', x, y)}, {lanes.is_nan(x)}")
    return lanes.select(is_hit, value, lanes.constant(0))


def _covers(axis: Axis) -> bool:
    """True if everything along an axis is in the copy."""
    steps = range(axis.low, axis.low + axis.count + axis.reach)
    return {axis.step * step + phase for step in steps for phase in axis.phases} >= set(range(axis.size))
