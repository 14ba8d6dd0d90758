"""A product and the nest over its result as one kernel, block by block.

    C = A B, then y = tanh(C + b) and its sum        128 x 256 of C, y and a sum there; then the next 128 x 256

A block of C is whole, all steps of the contracted axis done, before the nest comes to it, and it is still in the second cache
then: a large result does not go to memory and back in between. Where nothing but the nest reads C, it has no memory but that
of one block. Product and nest of a block are functions of their own: written into the loops over tiles, what the nest keeps
in registers would drive the sums of a tile out of them.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import memory_type
from pullback.backends.native.emission import Emission
from pullback.backends.native.kernels.nest_blocks import (
    Cut,
    Sizes,
    block_of,
    combine,
    count_of,
    in_blocks,
    is_combined,
    moved_to_block,
    operands_of,
    partials_of,
    with_own_pointers,
    write_block,
)
from pullback.backends.native.kernels.nests import emit_nest
from pullback.backends.native.kernels.product import Product
from pullback.backends.native.kernels.products import write_product
from pullback.backends.native.kernels.shared_nests import estimated_ns
from pullback.backends.native.kernels.thread_parts import nanoseconds_of
from pullback.backends.native.threads.sharing import SHARED_FROM_NS, share
from pullback.backends.nests.nest import Nest
from pullback.dataclass import dataclass
from pullback.ir.strides import contiguous_strides

#: Bytes of a block of the result, and of what its columns read of B: both stay in the second cache, beside each other.
BLOCK_BYTES = 1 << 18
FACTOR_BYTES = 1 << 18

#: Columns of a block: whole vectors, and rows long enough for the nest. Rows: whole tiles.
_COLUMNS, _MOST_COLUMNS = 64, 1024
_ROWS, _LEAST_ROWS = 8, 32

#: From how many bytes of a result on, and up to which length of the contracted axis, blocks are the better: beyond the second
#: cache, and beyond the third.
WORTH_IT = ((1 << 20, 16), (1 << 23, 32), (1 << 25, 128))

#: The largest size of partial reductions, as a part of the result.
_PARTIALS = 0.125

_LINE = 64

_Side: TypeAlias = Literal["batch", "rows", "columns"]


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis of the result: what it is of the product, and how far the factors and the operands of the nest move along it."""

    side: _Side
    size: int
    factors: tuple[int, int, int]
    """Strides of A, B and C."""
    operands: tuple[int, ...]
    reduced: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Epilogue:
    """A product, the nest over its result, and the blocks that both are cut into.

    The axes of the nest are those of the product, the batch first, then rows and columns, and there is a pointer for each
    of its operands.
    """

    product: Product
    nest: Nest
    cuts: tuple[Cut, ...]

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return count_of(self.cuts)

    def partials(self) -> list[int]:
        """Bytes for the partial results of each reduction, over all blocks."""
        sizes = [
            partials_of(self.nest, one, self.cuts) * one.dtype.itemsize if is_combined(one, self.cuts) else 0
            for one in self.nest.reductions
        ]
        return [-(-size // _LINE) * _LINE for size in sizes]


def epilogue(product: Product, nest: Nest, results: Collection[int]) -> Epilogue | None:
    """A product and a nest, some reads of which are its result; None where they cannot be one kernel of several blocks."""
    axes = _axes(product, nest, results)
    if axes is None or not product.k:
        return None
    axes = _with_rows_and_columns(_merged(axes), nest)
    product, nest = _product_over(product, axes), _nest_over(nest, axes)
    cuts = _cuts(product)
    one = Epilogue(product, nest, cuts)
    size = math.prod(nest.space) * product.dtype.itemsize
    if one.blocks == 1 or sum(one.partials()) > _PARTIALS * size:
        return None
    return one


def pays(one: Epilogue) -> bool:
    """True if finishing the product block by block saves time."""
    return may_pay(math.prod(one.nest.space) * one.product.dtype.itemsize, one.product.k)


def may_pay(nbytes: int, k: int) -> bool:
    """True if the result is larger than the second cache and few products go into each element of it."""
    return any(nbytes >= far and k <= deepest for far, deepest in WORTH_IT)


# --- axes -----------------------------------------------------------------------------------------------------------------
def _axes(product: Product, nest: Nest, results: Collection[int]) -> list[_Axis] | None:
    """The axes of the result, outermost first, if they are those of the nest one by one."""
    sides: list[tuple[_Side, int, tuple[int, int, int]]] = [
        ("batch", *axis)
        for axis in zip(product.batch, zip(product.a_batch, product.b_batch, product.c_batch, strict=True), strict=True)
    ]
    sides.append(("rows", product.m, (product.a_strides[0], 0, product.c_strides[0])))
    sides.append(("columns", product.n, (0, product.b_strides[1], product.c_strides[1])))
    found = []
    free = [axis for axis, size in enumerate(nest.space) if size != 1]
    for side, size, factors in sides:
        if size == 1:
            continue
        same = (
            axis
            for axis in free
            if nest.space[axis] == size and all(nest.reads[read].strides[axis] == factors[2] for read in results)
        )
        axis = next(same, None)
        if axis is None:
            return None
        free.remove(axis)
        operands = tuple(operand.strides[axis] for operand in operands_of(nest))
        found.append(_Axis(side, size, factors, operands, tuple(axis in one.axes for one in nest.reductions)))
    return None if free else found


def _merged(axes: list[_Axis]) -> list[_Axis]:
    """Axes that are one for both: those of the batch, and with the rows or the columns what is a longer matrix."""
    for inner in axes:
        ends = tuple(stride * inner.size for stride in (*inner.factors, *inner.operands))
        for outer in axes:
            if outer.side != "batch" or outer is inner or outer.reduced != inner.reduced:
                continue
            if (*outer.factors, *outer.operands) == ends:
                longer = replace(inner, size=outer.size * inner.size)
                return _merged([longer if axis is inner else axis for axis in axes if axis is not outer])
    return axes


def _with_rows_and_columns(axes: Sequence[_Axis], nest: Nest) -> list[_Axis]:
    """The batch, rows and columns, of which there is one at least."""
    batch = [axis for axis in axes if axis.side == "batch"]
    operands, reduced = (0,) * len(operands_of(nest)), (False,) * len(nest.reductions)
    sides: tuple[_Side, ...] = ("rows", "columns")
    return batch + [
        next((axis for axis in axes if axis.side == side), _Axis(side, 1, (0, 0, 0), operands, reduced))
        for side in sides
    ]


def _product_over(product: Product, axes: Sequence[_Axis]) -> Product:
    *batch, rows, columns = axes
    a, b, c = (tuple(axis.factors[number] for axis in batch) for number in range(3))
    sizes = tuple(axis.size for axis in batch)
    return replace(product, m=rows.size, n=columns.size, batch=sizes, a_batch=a, b_batch=b, c_batch=c)


def _nest_over(nest: Nest, axes: Sequence[_Axis]) -> Nest:
    own = with_own_pointers(nest)
    strides = iter([tuple(axis.operands[number] for axis in axes) for number in range(len(operands_of(nest)))])
    return Nest(
        tuple(axis.size for axis in axes),
        tuple(replace(read, strides=next(strides)) for read in own.reads),
        own.steps,
        tuple(replace(write, strides=next(strides)) for write in own.writes),
        tuple(
            replace(
                reduction,
                strides=next(strides),
                axes=frozenset(number for number, axis in enumerate(axes) if axis.reduced[place]),
            )
            for place, reduction in enumerate(own.reductions)
        ),
    )


# --- blocks ---------------------------------------------------------------------------------------------------------------
def _cuts(product: Product) -> tuple[Cut, ...]:
    """Blocks of as many rows, or whole matrices, as stay in the cache; of long rows only so much as its columns of B do."""
    rank, itemsize = len(product.batch), product.dtype.itemsize
    room = BLOCK_BYTES // itemsize
    lines, along = (rank, product.m), (rank + 1, product.n)
    if abs(product.c_strides[0]) < abs(product.c_strides[1]):
        lines, along = along, lines
    most = min(_MOST_COLUMNS, max(_COLUMNS, FACTOR_BYTES // (product.k * itemsize)))
    most = max(most, room // lines[1])  # few rows: a block has all of them
    across = in_blocks(*along, _COLUMNS, -(-along[1] // most), longer=False)
    rows = max(_LEAST_ROWS, room // across.size // _ROWS * _ROWS)
    down = in_blocks(*lines, _ROWS, -(-lines[1] // rows), longer=False)
    matrix = product.m * product.n
    inside = []
    for axis in reversed(range(rank)):
        size = max(1, min(product.batch[axis], room // matrix))
        inside.append(in_blocks(axis, product.batch[axis], 1, -(-product.batch[axis] // size), longer=False))
        matrix *= product.batch[axis]
    return tuple(one for one in (*reversed(inside), across, down) if one.blocks > 1)


# --- emission -------------------------------------------------------------------------------------------------------------
def emit_with_epilogue(
    emission: Emission, one: Epilogue, factors: Sequence[str], operands: Sequence[str | None], room: str
) -> None:
    """Call the kernel of a product and its nest.

    The pointers are those of A and B, and of the operands of the nest: None for its reads of C, which is nowhere as a whole.
    Partial results of reductions are kept in a `room`, whose bytes are the sum of `partials`.
    """
    nest, product = one.nest, one.product
    places = list(operands)
    combined: list[tuple[int, str, str]] = []
    offset = 0
    for number, nbytes in enumerate(one.partials(), len(nest.reads) + len(nest.writes)):
        result = places[number]
        if nbytes and result is not None:
            place = places[number] = emission.function.element(room, offset, "i8")
            combined.append((number, place, result))
            offset += nbytes
    pointers = [*factors, *(place for place in places if place is not None)]

    def build(function: Function, arguments: Sequence[str], block: Index) -> None:
        a, b, *given = arguments
        rest = iter(given)
        own = [None if place is None else next(rest) for place in places]
        _Writer(function, one, (a, b), own).write(block)

    key, name = (
        ("epilogue", repr(one)),
        f"matmul_with_epilogue_{product.m}x{product.n}x{product.k}_{product.dtype.str[1:]}",
    )
    if nanoseconds_of(product, emission.vector_bits) + estimated_ns(nest, emission.vector_bits) >= SHARED_FROM_NS:
        share(emission, key, name, pointers, one.blocks, build)
    else:

        def build_all(function: Function, arguments: Sequence[str]) -> None:
            with function.loop(0, one.blocks) as block:
                build(function, arguments, block)

        emission.kernel(key, name, pointers, build_all)
    for number, place, result in combined:
        reduction = nest.reductions[number - len(nest.reads) - len(nest.writes)]
        combine(emission, nest, reduction, one.cuts, place, result)


class _Writer:
    """The text of one block, whose number is not known now."""

    def __init__(
        self, function: Function, one: Epilogue, factors: tuple[str, str], operands: Sequence[str | None]
    ) -> None:
        self.function = function
        self.one = one
        self.factors = factors
        sizes = {cut.axis: cut.size for cut in one.cuts}
        count = math.prod(sizes.get(axis, size) for axis, size in enumerate(one.nest.space))
        self.panel = function.slot(memory_type(one.product.dtype), count=count, align=_LINE)
        self.operands = [self.panel if operand is None else operand for operand in operands]
        self.results = [number for number, operand in enumerate(operands) if operand is None]

    def write(self, block: Index) -> None:
        """Write the product of the block, then its nest."""
        write_block(self.function, self.one.cuts, block, self._write)

    def _write(self, indices: Sequence[Index], sizes: Sizes) -> None:
        one, inner = self.one, Emission(self.function.module, self.function)
        part = _part(one.product, sizes)

        def build(function: Function, arguments: Sequence[str]) -> None:
            write_product(function, part, arguments)

        a, b = self._factors(indices)
        name = f"product_{part.m}x{part.n}x{part.k}_{part.dtype.str[1:]}"
        inner.kernel(("block of a product", repr(part)), name, [a, b, self.panel], build)

        nest = block_of(one.nest, one.cuts, sizes)
        strides = (*part.c_batch, *part.c_strides)
        reads = [
            replace(read, strides=strides) if number in self.results else read for number, read in enumerate(nest.reads)
        ]
        pointers = moved_to_block(self.function, one.nest, one.cuts, self.operands, indices, self.results)
        emit_nest(inner, replace(nest, reads=tuple(reads)), pointers)

    def _factors(self, indices: Sequence[Index]) -> list[str]:
        """Pointers to A and B at a block."""
        product = self.one.product
        strides = ((*product.a_batch, product.a_strides[0], 0), (*product.b_batch, 0, product.b_strides[1]))
        moved = []
        for pointer, along, dtype in zip(self.factors, strides, (product.a_dtype, product.b_dtype), strict=True):
            steps = ((index, cut.size * along[cut.axis]) for index, cut in zip(indices, self.one.cuts, strict=True))
            moved.append(self.function.element(pointer, self.function.offset(*steps), memory_type(dtype)))
        return moved


def _part(product: Product, sizes: Sizes) -> Product:
    """The product of a block, whose result lies in the same order as the whole, without gaps."""
    rank = len(product.batch)
    batch = tuple(sizes.get(axis, size) for axis, size in enumerate(product.batch))
    part = replace(product, batch=batch, m=sizes.get(rank, product.m), n=sizes.get(rank + 1, product.n))
    strides = (*product.c_batch, *product.c_strides)
    order = sorted(range(rank + 2), key=lambda axis: -abs(strides[axis]))
    space = (*batch, part.m, part.n)
    packed = dict(zip(order, contiguous_strides(tuple(space[axis] for axis in order)), strict=True))
    return replace(
        part,
        c_batch=tuple(packed[axis] for axis in range(rank)),
        c_strides=(packed[rank], packed[rank + 1]),
    )
