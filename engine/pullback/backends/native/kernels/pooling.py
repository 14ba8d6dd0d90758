"""Pooling, and what belongs to the derivatives of it: the mean or the maximum of windows, channel by channel.

Data is copied with what is around it, as for convolutions (`kernels/convolution/planes.py`), so that every element of the
windows of a row of results is one vector of neighbours, whatever the stride. What is spread back from windows is added up
in such a copy, and then written where it belongs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np

from pullback.backends.native.emission import Emission, Stored, emits
from pullback.backends.native.kernels.convolution.axes import batch_axis, forward_axes
from pullback.backends.native.kernels.convolution.correlation import Layout
from pullback.backends.native.kernels.convolution.planes import Planes, fill, spread
from pullback.backends.native.kernels.convolution.rows import along, clear_all, clear_row
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import Lanes, memory_type
from pullback.core.primitive import Primitive
from pullback.ir.graph import Node
from pullback.ir.types import Shape
from pullback.rules.pooling import max_pool, max_select, max_spread, mean_pool, mean_spread
from pullback.rules.sliding import Sliding

#: Windows of more elements than this are walked by a loop.
_UNROLLED_WINDOW = 9

#: How many copies of one channel with what is around it each primitive keeps.
_COPIES = {mean_pool: 1, max_pool: 1, mean_spread: 1, max_select: 2, max_spread: 2}


@dataclass(frozen=True, slots=True)
class Pooling:
    """One pooling or derivative of it; its own key."""

    primitive: Primitive
    sliding: Sliding
    operands: tuple[Layout, ...]
    result: Layout
    examples: int
    channels: int
    dtype: np.dtype[Any]

    @property
    def planes(self) -> Planes:
        """The copy of one channel of one example."""
        axes = (batch_axis(1), *forward_axes(self.sliding))
        return Planes(axes, (1, *self.sliding.out), 1, tuple(range(len(axes))), 64 // self.dtype.itemsize)

    def copy_size(self, vector_bits: int) -> int:
        """Elements of memory for one copy, whole lines, and what is read past its end."""
        return self.planes.size + 2 * vector_bits // 32


def _refusal(node: Node) -> str | None:
    """Why a node is not emitted."""
    dtypes = {atom.type.dtype for atom in (*node.inputs, *node.outputs)}
    if len(dtypes) > 1:
        return f"{node.primitive.name} of operands of different dtypes"
    if any(dtype.kind != "f" for dtype in dtypes):
        return f"{node.primitive.name} of {dtypes.pop().name}"
    return None


def _size(node: Node) -> Shape:
    """Spatial sizes of the data."""
    params = dict(node.params)
    if "size" in params:
        size: Shape = params["size"]
        return size
    return node.inputs[0 if len(node.inputs) == 1 else 1].type.shape[2:]


def _pooling(node: Node, operands: Sequence[Stored], result: Stored) -> Pooling:
    params = dict(node.params)
    window = params["window"]
    sliding = Sliding(_size(node), window, params["stride"], params["pad"], (1,) * len(window))
    layouts = tuple(map(Layout.of, operands))
    return Pooling(node.primitive, sliding, layouts, Layout.of(result), result.shape[0], result.shape[1], result.dtype)


def _scratch(node: Node, vector_bits: int) -> int:
    operands = [Stored.in_order("", atom.type) for atom in node.inputs]
    result = Stored.in_order("", node.outputs[0].type)
    if not all(operand.size for operand in (*operands, result)):
        return 0
    pooling = _pooling(node, operands, result)
    return _COPIES[node.primitive] * pooling.copy_size(vector_bits) * result.dtype.itemsize


@emits(mean_pool, max_pool, mean_spread, max_select, max_spread, supports=_refusal, scratch=_scratch)
def emit_pooling(
    emission: Emission, node: Node, operands: Sequence[Stored], results: Sequence[Stored], scratch: str
) -> None:
    """A pooling or a derivative of it."""
    (result,) = results
    if not all(operand.size for operand in (*operands, result)):
        return
    pooling = _pooling(node, operands, result)

    def build(function: Function, pointers: Sequence[str]) -> None:
        _Writer(function, pooling, emission.vector_bits, pointers).write(result)

    pointers = [*(operand.pointer for operand in operands), result.pointer, scratch]
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
    def write(self, result: Stored) -> None:
        """Channel by channel: the copies, rows of results, and back what is spread."""
        function, pooling = self.function, self.pooling
        for number, around in enumerate(self._around()):
            self._set(self.copies[number], around)
        if self._spreads:
            clear_all(function, Stored(self.result, result.shape, result.strides, result.dtype))
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
                clear_row(function, self.lanes, self.copies[0], self.planes.size)
            with ExitStack() as stack:
                indices = [stack.enter_context(function.loop(0, count)) for count in self.sliding.out[:-1]]
                self._write_row(operands, target, indices)
            if self._spreads:
                spread(function, self.lanes, pooling.result, self.planes, self.copies[0], starts, target)

    def _around(self) -> list[float]:
        """What is around each copy."""
        return {max_pool: [-inf], max_select: [0.0, -inf], max_spread: [0.0, -inf]}.get(self.pooling.primitive, [0.0])

    def _copied(self) -> dict[int, int]:
        """Which operand is copied to which copy."""
        return {mean_spread: {}, max_select: {0: 0, 1: 1}, max_spread: {1: 1}}.get(self.pooling.primitive, {0: 0})

    def _set(self, copy: str, value: float) -> None:
        number = self.lanes.constant(value)
        along(
            self.function,
            self.lanes,
            self.planes.size,
            lambda index, active: self.lanes.store(number, copy, index, active=active),
        )

    # --- a row ------------------------------------------------------------------------------------------------------
    def _write_row(self, operands: Sequence[str], target: str, indices: Sequence[Index]) -> None:
        """One row of windows; `operands` and `target` are those of the channel."""
        function, pooling = self.function, self.pooling
        pitches = self.planes.pitches
        place = function.offset(*zip(indices, pitches[1:-1], strict=True))
        copies = [self._at(copy, place) for copy in self.copies]

        def row(pointer: str, layout: Layout) -> str:
            return self._at(pointer, function.offset(*zip(indices, layout.spatial[:-1], strict=True)))

        rows = [row(pointer, layout) for pointer, layout in zip(operands, pooling.operands, strict=True)]
        own = row(target, pooling.result)

        def vector(index: Index, active: int | None) -> None:
            here = [self._at(copy, index) for copy in copies]

            def read(operand: int) -> str:
                stride = pooling.operands[operand].spatial[-1]
                first = self._at(rows[operand], function.mul(index, stride))
                return self.lanes.load(first, stride=stride, active=active)

            value = self._value(here, read, active)
            if value is not None:
                stride = pooling.result.spatial[-1]
                self.lanes.store(value, self._at(own, function.mul(index, stride)), stride=stride, active=active)

        along(function, self.lanes, self.sliding.out[-1], vector)

    def _value(self, copies: Sequence[str], read: Callable[[int], str], active: int | None) -> str | None:
        """A vector of results of windows; what is spread back gives none."""
        lanes, primitive, zero = self.lanes, self.pooling.primitive, self.lanes.constant(0)
        size = lanes.constant(prod(self.sliding.kernel))
        if primitive is mean_pool:
            return lanes.div(self._fold(zero, lambda tap, sum_: lanes.add(sum_, lanes.load(copies[0], tap))), size)
        if primitive is max_pool:
            lowest = lanes.constant(-inf)
            return self._fold(lowest, lambda tap, most: lanes.intrinsic("maximum", most, lanes.load(copies[0], tap)))
        if primitive is mean_spread:
            share = lanes.div(read(0), size)
            self._add(copies[0], lambda _: share, active)
            return None
        y = read(2)

        def of_largest(tap: Index, value: str) -> str:
            """A value where an element is the maximum of its window, as a NaN always is, else 0."""
            x = lanes.load(copies[1], tap)
            is_hit = self.function.value(f"or {lanes.mask_type} {lanes.compare('==', x, y)}, {lanes.is_nan(x)}")
            return lanes.select(is_hit, value, zero)

        one = lanes.constant(1)
        count = self._fold(zero, lambda tap, sum_: lanes.add(sum_, of_largest(tap, one)))
        if primitive is max_select:
            moved = self._fold(zero, lambda tap, sum_: lanes.add(sum_, of_largest(tap, lanes.load(copies[0], tap))))
            return lanes.div(moved, count)
        share = lanes.div(read(0), count)
        self._add(copies[0], lambda tap: of_largest(tap, share), active)
        return None

    def _each_tap(self) -> Iterator[Index]:
        """How far each element of a window is from its first place."""
        function, taps = self.function, self.taps
        if len(taps) <= _UNROLLED_WINDOW:
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

    def _add(self, copy: str, term: Callable[[Index], str], active: int | None) -> None:
        """Add to each element of the windows."""
        for tap in self._each_tap():
            value = self.lanes.add(self.lanes.load(copy, tap), term(tap))
            self.lanes.store(value, copy, tap, active=active)
