"""Matrix products: C = alpha A B, or C += alpha A B, for matrices in any layout, and for batches of them.

A product is described by sizes and strides alone, so vectors, transposes, broadcasts and outer products are no cases of
their own.

    Product -> choosing       what lanes are, how large tiles are, what is copied first     tile_choice.py
            -> multiplying    the loops                                                     product_loops.py, tiles.py,
                              and what is copied, transposed or computed in between             packed_panels.py, tile_results.py
            -> blas           large ones, where its interface can describe them             blas.py, blas_threshold.py
            -> parts          several threads, each with a part of the result               thread_parts.py

    emit_product(emission, described(a, b, c), (a.pointer, b.pointer, c.pointer))
"""

from collections.abc import Sequence

import numpy as np

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.native.emission import Emission, Site, emits
from pullback.backends.native.kernels import blas, blas_threshold
from pullback.backends.native.kernels.product import Product, described
from pullback.backends.native.kernels.product_loops import write_in_two, write_tiles
from pullback.backends.native.kernels.thread_parts import (
    Partition,
    Write,
    partition_of_blas,
    partition_of_tiles,
    write_part,
)
from pullback.backends.native.kernels.tile_choice import choose, lanes_apart
from pullback.backends.native.threads.sharing import share
from pullback.ir.graph import Node
from pullback.rules.contractions import matmul


def emit_product(emission: Emission, product: Product, pointers: Sequence[str]) -> None:
    """A kernel that computes a product, or several threads do; the pointers are those of A, B and C."""
    if product.is_empty:
        return
    product = product.simplified()
    partition, write = _way(product, emission.vector_bits)

    def build(function: Function, arguments: Sequence[str], block: Index) -> None:
        if partition.is_whole:
            write(function, product, arguments)
        else:
            write_part(function, product, arguments, partition, block, write)

    key = ("product", repr(product))
    name = f"product_{product.m}x{product.n}x{product.k}_{product.dtype.str[1:]}"
    share(emission, key, name, pointers, partition.count, build)


def write_product(function: Function, product: Product, pointers: Sequence[str]) -> None:
    """The loops of a product, in a function that is being written: what `emit_product` has in a function of its own."""
    if product.is_empty:
        return
    product = product.simplified()
    _, write = _way(product, function.module.vector_bits)
    write(function, product, pointers)


def _way(product: Product, vector_bits: int) -> tuple[Partition, Write]:
    """The partition of a product, and the writers of its parts."""
    if blas_threshold.is_beyond(product, vector_bits):
        return partition_of_blas(product, vector_bits), _by_blas
    choice = choose(product, vector_bits)
    partition = partition_of_tiles(product, choice, vector_bits)
    cut = lanes_apart(product, vector_bits) if partition.is_whole else None

    def by_tiles(function: Function, part: Product, pointers: Sequence[str]) -> None:
        if cut is None:
            write_tiles(function, part, pointers, choice=choice)
        else:
            write_in_two(function, part, pointers, *cut)

    return partition, by_tiles


def _by_blas(function: Function, product: Product, pointers: Sequence[str]) -> None:
    blas.write_gemm(function, product, *pointers)


# --- nodes ----------------------------------------------------------------------------------------------------------------
_COMPUTED = frozenset(np.dtype(name) for name in ("f4", "f8", "i4", "i8"))


def _supports(node: Node) -> str | None:
    dtype = node.outputs[0].type.dtype
    return None if dtype in _COMPUTED else f"matmul of {dtype} is not one of sums and products"


@emits(matmul, supports=_supports)
def _emit_matmul(emission: Emission, _node: Node, site: Site) -> None:
    a, b = site.operands
    (c,) = site.results
    emit_product(emission, described(a, b, c), (a.pointer, b.pointer, c.pointer))
