"""A large product cut into parts that threads can compute apart.

Parts are as long as each other along one axis of the result, but for the last; what is copied for one part is not copied
again for another. How they are cut depends on the product and the width of vectors alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import memory_type
from pullback.backends.native.kernels.product import Product
from pullback.backends.native.kernels.tile_choice import Choice
from pullback.backends.native.threads.sharing import blocks_of
from pullback.dataclass import dataclass

#: Writes a product from and to what pointers point to, those of A, B and C.
Write: TypeAlias = Callable[[Function, Product, Sequence[str]], None]

#: Vectors that are multiplied and added per nanosecond: two a cycle.
_VECTORS_PER_NS = 5.0

#: Columns that a part has at the least if the rows are copied for each: that takes 4 / columns of what the part takes.
_COLUMNS_PER_COPY = 256

#: Strips of rows that are so many are parts as they are.
_FEW_STRIPS = 7

#: Rows or columns of a product by BLAS, if there are to be more parts than two: it copies the other factor for every part.
_BLAS_LENGTH = 1024


@dataclass(frozen=True, slots=True)
class Partition:
    """The number of parts, along which axis of the result, and how long they are."""

    axis: int
    """The axis: those of the batch come first, then rows and columns."""
    length: int
    count: int

    @property
    def is_whole(self) -> bool:
        """True if there is nothing to share."""
        return self.count == 1


def partition_of_tiles(product: Product, choice: Choice, vector_bits: int) -> Partition:
    """Parts of a product by tiles of our own: whole panels of columns, or strips of rows where rows are copied."""
    rank = len(product.batch)
    seen = product.transposed() if choice.transposed else product
    rows, columns = (rank + 1, rank) if choice.transposed else (rank, rank + 1)
    panel = choice.columns * (choice.width if choice.along == "columns" else 1)
    if rank and choice.along != "batch" and product.batch[0] >= 16:
        axis, size, unit = 0, product.batch[0], 1
    elif choice.packs_rows and choice.height >= seen.m:
        axis, size, unit = columns, seen.n, -(-_COLUMNS_PER_COPY // panel) * panel
    elif choice.packs_rows:
        axis, size, unit = rows, seen.m, _strips(seen.m, choice)
    elif seen.n <= 4 * panel and not choice.packs:
        axis, size, unit = rows, seen.m, choice.rows
    else:
        axis, size, unit = columns, seen.n, panel
    return _cut(axis, size, unit, blocks_of(nanoseconds_of(product, vector_bits), -(-size // unit)))


def _strips(size: int, choice: Choice) -> int:
    """Rows of a part: as many as are copied at a time, or, where that gives few parts, so many that there are four.

    Of three parts one thread of two would do two.
    """
    if size >= _FEW_STRIPS * choice.height:
        return choice.height
    return min(choice.height, -(-size // 4 // choice.rows) * choice.rows)


def partition_of_blas(product: Product, vector_bits: int) -> Partition:
    """Parts of a product by BLAS: along the longer side of the result."""
    rank = len(product.batch)
    axis, size = max(((rank, product.m), (rank + 1, product.n)), key=lambda side: side[1])
    return _cut(axis, size, 64, blocks_of(nanoseconds_of(product, vector_bits), max(2, size // _BLAS_LENGTH)))


def nanoseconds_of(product: Product, vector_bits: int) -> float:
    """The approximate time of a product on one thread."""
    lanes = vector_bits / (8 * product.dtype.itemsize)
    places = 1
    for size in product.batch:
        places *= size
    return places * product.multiplications / (lanes * _VECTORS_PER_NS)


def _cut(axis: int, size: int, unit: int, count: int) -> Partition:
    """A partition into at most `count` parts of whole units."""
    length = -(-size // max(1, count) // unit) * unit
    return Partition(axis, length, -(-size // length)) if count > 1 else Partition(axis, size, 1)


def write_part(
    function: Function,
    product: Product,
    pointers: Sequence[str],
    partition: Partition,
    number: Index,
    write: Write,
) -> None:
    """Write one part, whose number is not known now; the last may be shorter, and is written apart then."""
    size = (*product.batch, product.m, product.n)[partition.axis]
    first = function.mul(number, partition.length)
    rest = size - (partition.count - 1) * partition.length
    moved = _moved(function, product, pointers, partition.axis, first)
    if rest == partition.length:
        write(function, _with_size(product, partition.axis, rest), moved)
        return
    last = partition.count - 1
    for relation, length in (("ne", partition.length), ("eq", rest)):
        with function.when(function.value(f"icmp {relation} i64 {number}, {last}")):
            write(function, _with_size(product, partition.axis, length), moved)


def _with_size(product: Product, axis: int, size: int) -> Product:
    rank = len(product.batch)
    if axis < rank:
        return replace(product, batch=(*product.batch[:axis], size, *product.batch[axis + 1 :]))
    return replace(product, m=size) if axis == rank else replace(product, n=size)


def _moved(function: Function, product: Product, pointers: Sequence[str], axis: int, first: Index) -> list[str]:
    """The pointers of A, B and C at an index of an axis of C."""
    rank = len(product.batch)
    if axis < rank:
        strides = (product.a_batch[axis], product.b_batch[axis], product.c_batch[axis])
    elif axis == rank:
        strides = (product.a_strides[0], 0, product.c_strides[0])
    else:
        strides = (0, product.b_strides[1], product.c_strides[1])
    dtypes = (product.a_dtype, product.b_dtype, product.dtype)
    return [
        function.element(pointer, function.mul(first, stride), memory_type(dtype))
        for pointer, stride, dtype in zip(pointers, strides, dtypes, strict=True)
    ]
