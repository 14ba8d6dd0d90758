"""Products with enough work to be shared between threads, cut along their columns or rows, or along the batch.

Tiles of our own are cut along the axis that panels are copied of where it is long enough, so that each panel is still copied
once; this costs nothing on one thread. BLAS copies all it reads for every block, which costs some 5 %: on one thread its products are not cut. So by
BLAS, and only there, the last bits of large products may be others on several threads than on one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from pullback.backends.native.emission import Emission
from pullback.backends.native.kernels import blas, cut_off
from pullback.backends.native.kernels.choosing import choose
from pullback.backends.native.kernels.product import Product, places
from pullback.backends.native.kernels.products import emit_product
from pullback.backends.native.threads.sharing import blas_on_this_thread, blocks_of, has_several_threads, share
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import memory_type

MOST_BLOCKS: Final = 32
LEAST_SIZE: Final = 64
"""Rows or columns of a block of tiles."""
LEAST_SIZE_BY_BLAS: Final = 256

_FLOPS_PER_CYCLE_AND_LANE: Final = 2.0
_CYCLES_PER_NS: Final = 3.0
_BYTES_PER_NS: Final = 16.0


def emit_shared_product(emission: Emission, product: Product, pointers: Sequence[str]) -> None:
    """A product by one kernel, or by one for each block where they are worth sharing; the pointers are those of A, B, C."""
    simple = product if product.is_empty else product.simplified()
    if simple.is_empty:
        emit_product(emission, product, pointers)
    elif cut_off.is_beyond(simple, emission.vector_bits):
        _emit_by_blas(emission, simple, pointers)
    else:
        cut = _cut(simple, emission.vector_bits)
        if cut is None:
            emit_product(emission, product, pointers)
        else:
            _emit_blocks(emission, simple, cut, pointers)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Blocks of one size along the rows, the columns or the first axis of the batch; the last one has what is left."""

    along: Literal["rows", "columns", "batch"]
    size: int
    blocks: int
    last_size: int


def arithmetic_ns(product: Product, vector_bits: int) -> float:
    """How long the arithmetic takes on one thread, roughly: at about half the peak of two multipliers."""
    lanes = vector_bits / (8 * product.dtype.itemsize)
    flops = 2.0 * product.multiplications * places(product)
    return flops / (lanes * _FLOPS_PER_CYCLE_AND_LANE * _CYCLES_PER_NS)


def memory_ns(product: Product) -> float:
    """How long it takes to go through the three matrices once, roughly."""
    numbers = product.m * product.k + product.k * product.n + product.m * product.n
    return product.dtype.itemsize * numbers * places(product) / _BYTES_PER_NS


def _cut(product: Product, vector_bits: int) -> _Cut | None:
    busy_ns, moving_ns = arithmetic_ns(product, vector_bits), memory_ns(product)
    work_ns = max(busy_ns, moving_ns)
    if product.batch and product.batch[0] > 1:
        return _in_blocks("batch", product.batch[0], 1, work_ns)
    rows = _in_blocks("rows", product.m, LEAST_SIZE, work_ns)
    columns = _in_blocks("columns", product.n, LEAST_SIZE, work_ns)
    if moving_ns <= busy_ns:
        # What is cut across is copied for every block: that is little where there are few of the others.
        return rows or columns if choose(product, vector_bits).turned else columns or rows
    # Where memory is what takes the time, blocks of pieces of lines are slower on one thread, and so are outer products.
    if product.m * product.n > product.k * max(product.m, product.n):
        return None
    in_pieces = {
        "rows": (product.a_strides[0] == 1 and product.k > 1) or (product.c_strides[0] == 1 and product.n > 1),
        "columns": (product.b_strides[1] == 1 and product.k > 1) or (product.c_strides[1] == 1 and product.m > 1),
    }
    whole = [cut for cut in (rows, columns) if cut is not None and not in_pieces[cut.along]]
    return max(whole, key=lambda cut: cut.blocks, default=None)


def _in_blocks(along: Literal["rows", "columns", "batch"], size: int, unit: int, work_ns: float) -> _Cut | None:
    blocks = min(MOST_BLOCKS, blocks_of(work_ns, size // unit))
    if blocks < 2:
        return None
    units = -(-size // unit)
    own = unit * -(-units // blocks)
    count = -(-size // own)
    return _Cut(along, own, count, size - (count - 1) * own)


def _emit_blocks(emission: Emission, product: Product, cut: _Cut, pointers: Sequence[str]) -> None:
    def build(function: Function, arguments: Sequence[str], block: Index) -> None:
        inner = Emission(function.module, function)
        moved = _moved(function, product, cut, arguments, block)
        if cut.last_size == cut.size:
            emit_product(inner, _part(product, cut, cut.size), moved)
            return
        is_last = function.value(f"icmp eq i64 {block}, {cut.blocks - 1}")
        is_other = function.value(f"xor i1 {is_last}, true")
        for condition, size in ((is_other, cut.size), (is_last, cut.last_size)):
            with function.when(condition):
                emit_product(inner, _part(product, cut, size), moved)

    share(emission, ("shared product", repr(product), cut), "product", pointers, cut.blocks, build)


def _emit_by_blas(emission: Emission, product: Product, pointers: Sequence[str]) -> None:
    function = emission.function
    size = max(product.m, product.n)
    along: Literal["rows", "columns"] = "rows" if size == product.m else "columns"
    cut = _in_blocks(along, size, LEAST_SIZE_BY_BLAS, arithmetic_ns(product, emission.vector_bits))
    with blas_on_this_thread(function):
        if cut is None:
            emit_product(emission, product, pointers)
            return
        several = has_several_threads(function)
        one = function.value(f"xor i1 {several}, true")
        with function.when(one):
            emit_product(emission, product, pointers)
        with function.when(several):
            _emit_blocks_by_blas(emission, product, cut, pointers)


def _emit_blocks_by_blas(emission: Emission, product: Product, cut: _Cut, pointers: Sequence[str]) -> None:
    def build(function: Function, arguments: Sequence[str], block: Index) -> None:
        moved = _moved(function, product, cut, arguments, block)
        is_last = function.value(f"icmp eq i64 {block}, {cut.blocks - 1}")
        is_other = function.value(f"xor i1 {is_last}, true")
        for condition, size in ((is_other, cut.size), (is_last, cut.last_size)):
            with function.when(condition):
                blas.write_gemm(function, _part(product, cut, size), moved[0], moved[1], moved[2])

    share(emission, ("shared product by BLAS", repr(product), cut), "product", pointers, cut.blocks, build)


def _moved(function: Function, product: Product, cut: _Cut, pointers: Sequence[str], block: Index) -> list[str]:
    """The pointers of A, B and C at the begin of a block."""
    strides = {
        "rows": (product.a_strides[0], 0, product.c_strides[0]),
        "columns": (0, product.b_strides[1], product.c_strides[1]),
        "batch": tuple(along[0] if along else 0 for along in (product.a_batch, product.b_batch, product.c_batch)),
    }[cut.along]
    dtypes = (product.a_dtype, product.b_dtype, product.dtype)
    return [
        function.element(pointer, function.mul(block, stride * cut.size), memory_type(dtype))
        for pointer, stride, dtype in zip(pointers, strides, dtypes, strict=True)
    ]


def _part(product: Product, cut: _Cut, size: int) -> Product:
    if cut.along == "rows":
        return replace(product, m=size)
    if cut.along == "columns":
        return replace(product, n=size)
    return replace(product, batch=(size, *product.batch[1:]))
