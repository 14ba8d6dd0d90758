"""Nests over the same outer axes, a block of these at a time: what one leaves for the next is still in the cache.

    max of each row > exp of what is less that > sum of each row > quotient      64 rows through all four, then the next 64

Values that only pass from one nest to another have memory for one block. A sum over the outer axes is that of the blocks'
sums, which are added like the blocks of any sum (see accumulators.py): its error does not grow with their number.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pullback.backends.native.emission import Emission, contiguous_strides
from pullback.backends.native.kernels.accumulators import starting_value
from pullback.backends.native.kernels.nest import Constant, Nest, Read, Reduction, Step, Write
from pullback.backends.native.kernels.nests import emit_nest
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import memory_type
from pullback.ir.types import Shape
from pullback.rules.activations import identity
from pullback.rules.elementwise import add, maximum, minimum, mul, sub, where
from pullback.rules.logic import isnan, logical_and, logical_or

#: Bytes of all that the nests of a block read and write: the first level of the cache. Normalising the rows of
#: f32[20000, 300] takes 3.0 ms by blocks of 16 KB, 3.6 ms of 128 KB, 6.5 ms uncut.
BLOCK_BYTES = 1 << 15

#: Bytes that a block may be of where one place of the outer axes has so many: the second level.
_MOST_BYTES = 1 << 18

#: Places in a block where there are sums over the outer axes, each block of which costs as much as a few.
_LEAST_ROWS = 4

#: Elements of a sum over the outer axes that is kept on the stack.
_MOST_KEPT = 4096

_F8 = np.dtype("f8")


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of so many positions along an axis; along the axes before it there is one position at a time."""

    axis: int
    rows: int

    def elements(self, shape: Shape) -> int:
        """Room for a block of a value that passes from one nest to another; its axes are those of the nests."""
        return self.rows * math.prod(shape[self.axis + 1 :])


def blocks_of(nests: Sequence[Nest], outer: int) -> Blocks | None:
    """How nests are cut that have the first axes in common; None where they cannot be, or where it would gain nothing.

    What one nest gives another must be there at the same place of those axes.
    """
    for axis in range(outer):
        row = _bytes_of_a_row(nests, axis)
        size = nests[0].space[axis]
        if row > BLOCK_BYTES and axis < outer - 1:
            continue
        summed = any(axis in reduction.axes for nest in nests for reduction in nest.reductions)
        rows = max(_LEAST_ROWS if summed else 1, BLOCK_BYTES // max(1, row))
        if rows * row > _MOST_BYTES or rows >= size * math.prod(nests[0].space[:axis]):
            return None
        if not all(_can_be_cut(nest, reduction, axis) for nest in nests for reduction in nest.reductions):
            return None
        return Blocks(axis, min(rows, size))
    return None


def _bytes_of_a_row(nests: Sequence[Nest], axis: int) -> int:
    """What nests read and write at one place of an axis and those before it, each place of memory once."""
    found: dict[int, int] = {}
    for nest in nests:
        operands = [(read.pointer, read.strides, read.dtype) for read in nest.reads]
        operands += [(write.pointer, write.strides, write.dtype) for write in nest.writes]
        inner = range(axis + 1, len(nest.space))
        for pointer, strides, dtype in operands:
            if any(strides[: axis + 1]):
                row = dtype.itemsize * math.prod(nest.space[k] for k in inner if strides[k])
                found[pointer] = max(row, found.get(pointer, 0))
    return sum(found.values())


def _can_be_cut(nest: Nest, reduction: Reduction, axis: int) -> bool:
    """Whether a reduction is over all of the axes that are cut or over none of them."""
    across = reduction.axes & set(range(axis + 1))
    kept = math.prod(size for k, size in enumerate(nest.space) if k not in reduction.axes)
    return not across or (len(across) == axis + 1 and kept <= _MOST_KEPT)


def emit_nests(
    emission: Emission, nests: Sequence[Nest], pointers: Sequence[str], passing: Collection[int], blocks: Blocks
) -> None:
    """Call the function of nests that run block by block; `passing` are the pointers to memory of one block."""

    def build(function: Function, arguments: Sequence[str]) -> None:
        _Cut(function, nests, arguments, frozenset(passing), blocks).write()

    emission.kernel(("nests", repr(nests), tuple(sorted(passing)), blocks), "nests", pointers, build)


@dataclass(frozen=True, slots=True)
class _Total:
    """A reduction over the outer axes: the memory of a block's, and of what it was so far."""

    reduction: Reduction
    shape: Shape
    block: str
    sums: tuple[str, ...]
    """Where sums of floats are kept: see `accumulators.add_finely`. Everything else is combined in its result."""
    result: str


class _Cut:
    def __init__(
        self,
        function: Function,
        nests: Sequence[Nest],
        pointers: Sequence[str],
        passing: frozenset[int],
        blocks: Blocks,
    ) -> None:
        self.function = function
        self.inner = Emission(function.module, function)
        self.nests = nests
        self.pointers = pointers
        self.passing = passing
        self.blocks = blocks
        self.totals = {
            (number, k): self._total(nest, reduction)
            for number, nest in enumerate(nests)
            for k, reduction in enumerate(nest.reductions)
            if blocks.axis in reduction.axes
        }

    def write(self) -> None:
        """The loops, and what comes before and after them."""
        for total in self.totals.values():
            self._start(total)
        self._outside(0, [])
        for total in self.totals.values():
            if total.sums:
                self._finish(total)

    def _outside(self, axis: int, indices: list[Index]) -> None:
        size = self.nests[0].space[axis]
        if axis < self.blocks.axis:
            with self.function.loop(0, size) as index:
                self._outside(axis + 1, [*indices, index])
            return
        rows = self.blocks.rows
        main = size // rows * rows
        with self.function.loop(0, main, rows) as index:
            self._block([*indices, index], rows)
        if main < size:
            self._block([*indices, main], size - main)

    def _block(self, indices: list[Index], rows: int) -> None:
        """All nests of one block."""
        for number, nest in enumerate(self.nests):
            emit_nest(self.inner, *self._part(number, nest, indices, rows))
            for (of, _), total in self.totals.items():
                if of == number:
                    self._add(total)

    def _part(self, number: int, nest: Nest, indices: list[Index], rows: int) -> tuple[Nest, list[str]]:
        """A nest of one block, and its pointers: one for each operand."""
        axis = self.blocks.axis
        pointers: list[str] = []

        def place(operand: Read | Write | Reduction) -> int:
            pointer = self.pointers[operand.pointer]
            if operand.pointer not in self.passing:
                offset = self.function.offset(*zip(indices, operand.strides[: axis + 1], strict=True))
                pointer = self.function.element(pointer, offset, memory_type(operand.dtype))
            if pointer not in pointers:
                pointers.append(pointer)
            return pointers.index(pointer)

        reads = [replace(read, pointer=place(read), strides=read.strides[axis:]) for read in nest.reads]
        writes = [replace(write, pointer=place(write), strides=write.strides[axis:]) for write in nest.writes]
        reductions = []
        for k, reduction in enumerate(nest.reductions):
            inside = frozenset(one - axis for one in reduction.axes if one >= axis)
            strides = reduction.strides[axis:]
            total = self.totals.get((number, k))
            if total is None:
                reductions.append(replace(reduction, axes=inside, pointer=place(reduction), strides=strides))
                continue
            of_block = iter(contiguous_strides(total.shape))
            strides = tuple(0 if one in inside else next(of_block) for one in range(len(strides)))
            reductions.append(replace(reduction, axes=inside, pointer=len(pointers), strides=strides))
            pointers.append(total.block)
        space = (rows, *nest.space[axis + 1 :])
        return Nest(space, tuple(reads), nest.steps, tuple(writes), tuple(reductions)), pointers

    # --- reductions over the outer axes -----------------------------------------------------------------------------
    def _total(self, nest: Nest, reduction: Reduction) -> _Total:
        shape = tuple(size for axis, size in enumerate(nest.space) if axis not in reduction.axes)
        parts = 0
        if reduction.kind == "sum" and reduction.dtype.kind == "f":
            parts = 1 if reduction.dtype.itemsize < 8 else 2
        return _Total(
            reduction,
            shape,
            self._room(reduction.dtype, shape),
            tuple(self._room(_F8, shape) for _ in range(parts)),
            self.pointers[reduction.pointer],
        )

    def _room(self, dtype: np.dtype[Any], shape: Shape) -> str:
        return self.function.slot(memory_type(dtype), count=math.prod(shape), align=64)

    def _start(self, total: _Total) -> None:
        start = starting_value(total.reduction.kind, total.reduction.dtype)
        if not total.sums:
            self._over(total, [], [self._number(start, total.reduction.dtype)], {0: total.result})
        for place in total.sums:
            self._over(total, [], [self._number(start, _F8)], {0: place})

    def _number(self, value: Any, dtype: np.dtype[Any]) -> Step:
        return Step(identity, (Constant(value),), (dtype,), dtype)

    def _add(self, total: _Total) -> None:
        """Add what a block came to."""
        dtype = total.reduction.dtype
        if not total.sums:
            primitive = _COMBINING[total.reduction.kind]
            step = Step(primitive, (0, 1), (dtype, dtype), dtype)
            self._over(total, [total.block, total.result], [step], {2: total.result})
        elif len(total.sums) == 1:
            steps = [Step(identity, (0,), (_F8,), _F8), _of_doubles(add, 1, 2)]
            self._over(total, [total.block, *total.sums], steps, {3: total.sums[0]})
        else:
            v, s, c, t, a = range(5)
            steps = [_of_doubles(add, s, v), _of_doubles(sub, t, s), _of_doubles(sub, t, a), _of_doubles(sub, s, 5)]
            steps += [_of_doubles(sub, v, a), _of_doubles(add, 6, 7), _of_doubles(add, c, 8)]
            self._over(total, [total.block, *total.sums], steps, {t: total.sums[0], 9: total.sums[1]})

    def _finish(self, total: _Total) -> None:
        """Round a sum of blocks."""
        dtype = total.reduction.dtype
        if len(total.sums) == 1:
            step = Step(identity, (0,), (dtype,), dtype)
            self._over(total, list(total.sums), [step], {1: total.result})
            return
        steps = [
            Step(isnan, (1,), (_F8,), np.dtype(bool)),
            _of_doubles(add, 0, 1),
            Step(where, (2, 0, 3), (np.dtype(bool), _F8, _F8), _F8),
        ]
        self._over(total, list(total.sums), steps, {4: total.result})

    def _over(self, total: _Total, reads: list[str], steps: Sequence[Step], writes: dict[int, str]) -> None:
        """A nest over the elements of a result; what it reads and writes is in C order but for the result itself."""
        apart = tuple(stride for axis, stride in enumerate(total.reduction.strides) if axis not in total.reduction.axes)
        close = contiguous_strides(total.shape)
        dtype = total.reduction.dtype

        def operand(pointer: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
            return apart if pointer == total.result else close, _F8 if pointer in total.sums else dtype

        pointers = list(dict.fromkeys([*reads, *writes.values()]))
        nest = Nest(
            total.shape,
            tuple(Read(pointers.index(pointer), *operand(pointer)) for pointer in reads),
            tuple(steps),
            tuple(Write(value, pointers.index(pointer), *operand(pointer)) for value, pointer in writes.items()),
            (),
        )
        emit_nest(self.inner, nest, pointers)


_COMBINING = {"sum": add, "prod": mul, "max": maximum, "min": minimum, "any": logical_or, "all": logical_and}


def _of_doubles(primitive: Any, *operands: int) -> Step:
    return Step(primitive, operands, (_F8,) * len(operands), _F8)
