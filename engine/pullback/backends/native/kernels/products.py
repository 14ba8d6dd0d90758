"""Matrix products: C = alpha A B, or C += alpha A B, for matrices that lie in memory in any way, and for batches of them.

A product is described by sizes and strides alone, so vectors, transposes, broadcasts and outer products are no cases of
their own. It is written as loops over tiles that are held in registers (`tiles`); what the lanes of a tile stand for, and
its size, are chosen by counting instructions (`choosing`). Large ones go to BLAS where its interface can describe them.

    emit_product(emission, Product(m, n, k, (k, 1), (n, 1), (n, 1), np.dtype("f4")), (a, b, c))
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from pullback.backends.native.emission import Emission, Stored, emits
from pullback.backends.native.kernels import blas
from pullback.backends.native.kernels.choosing import Choice, choose
from pullback.backends.native.kernels.packing import Panel, pack
from pullback.backends.native.kernels.product import Product, described
from pullback.backends.native.kernels.tiles import Factor, Tile, sum_products
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import Lanes, memory_type
from pullback.ir.graph import Node
from pullback.rules.contractions import matmul


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a result the lanes of a value belong: the indices of the first, and the axis along which the others follow."""

    indices: tuple[Index, ...]
    """Of the batch, the row and the column."""
    axis: int
    active: int | None
    """How many lanes count; None for all."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What is done to each value of a product before it is stored, or instead of that.

    `write(pointers, lanes, value, place)` gives the value to store, or None where it has stored what is wanted. The pointers
    are those given to `emit_product` behind A, B and C. The key says all that the text depends on.
    """

    key: Hashable
    write: Callable[[Sequence[str], Lanes, str, Place], str | None]


def emit_product(
    emission: Emission, product: Product, pointers: Sequence[str], *, epilogue: Epilogue | None = None
) -> None:
    """A kernel that computes a product; the pointers are those of A, B, C and what the epilogue reads."""
    key = ("product", product, epilogue.key if epilogue else None)
    name = f"product_{product.m}x{product.n}x{product.k}_{product.dtype.str[1:]}"

    def build(function: Function, arguments: Sequence[str]) -> None:
        write_product(function, product, arguments, epilogue=epilogue)

    emission.kernel(key, name, pointers, build)


def write_product(
    function: Function, product: Product, pointers: Sequence[str], *, epilogue: Epilogue | None = None
) -> None:
    """The loops of a product, in a function that is being written: what `emit_product` has in a function of its own."""
    if product.is_empty:
        return
    if epilogue is None:
        product = product.simplified()
        if blas.is_for_blas(product):
            blas.write_gemm(function, product, *pointers[:3])
            return
    _Writer(function, product, pointers, epilogue).write()


class _Writer:
    """The loops of one product."""

    def __init__(
        self, function: Function, product: Product, pointers: Sequence[str], epilogue: Epilogue | None
    ) -> None:
        self.function = function
        self.choice: Choice = choose(product, function.module.vector_bits)
        self.turned = self.choice.turned
        self.product = product.turned() if self.turned else product
        a, b, self.c = pointers[:3]
        self.a, self.b = (b, a) if self.turned else (a, b)
        self.others = pointers[3:]
        self.epilogue = epilogue
        self.lanes = Lanes(function, product.dtype, self.choice.width)

    def write(self) -> None:
        """All of it."""
        product, choice = self.product, self.choice
        with ExitStack() as loops:
            batch: list[Index] = []
            for axis, size in enumerate(product.batch):
                if choice.along == "batch" and axis == choice.axis:
                    batch.append(0)
                else:
                    batch.append(loops.enter_context(self.function.loop(0, size)))
            self._matrices(batch)

    def _matrices(self, batch: list[Index]) -> None:
        product, choice = self.product, self.choice
        if choice.along != "batch":
            self._panels(batch, None)
            return
        size = product.batch[choice.axis]
        whole = size // choice.width * choice.width
        if whole:
            with self.function.loop(0, whole, choice.width) as start:
                batch[choice.axis] = start
                self._panels(batch, None)
        if whole < size:
            batch[choice.axis] = whole
            self._panels(batch, size - whole)

    def _panels(self, batch: Sequence[Index], active: int | None) -> None:
        """All columns, a few at a time."""
        product, choice = self.product, self.choice
        unit = choice.width if choice.along == "columns" else 1
        step = choice.columns * unit
        packed = self._slot_of_panel(step) if choice.packs else None
        whole = product.n // step * step
        if whole:
            with self.function.loop(0, whole, step) as column:
                self._rows(batch, column, (active,) * choice.columns, packed)
        if whole < product.n:
            rest = product.n - whole
            actives = [active] * (rest // unit)
            if rest % unit:
                actives.append(rest % unit)
            self._rows(batch, whole, tuple(actives), packed)

    def _slot_of_panel(self, width: int) -> str:
        return self.function.slot(self.lanes.element, count=self.product.k * width, align=64)

    def _rows(self, batch: Sequence[Index], column: Index, actives: tuple[int | None, ...], packed: str | None) -> None:
        """All rows of a few columns, a few at a time."""
        product, choice, function = self.product, self.choice, self.function
        b_type, a_type = memory_type(product.b_dtype), memory_type(product.a_dtype)
        start = function.offset(*zip(batch, product.b_batch, strict=True), (column, product.b_strides[1]))
        right = self._right(function.element(self.b, start, b_type))
        if packed is not None:
            width = choice.columns * choice.width
            columns = sum(choice.width if active is None else active for active in actives)
            panel = Panel(product.k, columns, *product.b_strides, width, product.b_dtype)
            pack(function, panel, right.pointer, packed, min(8, self.lanes.width))
            right = Factor(packed, self.lanes.width, width, 1, product.b_dtype)

        def tile(row: Index, rows: int) -> None:
            start = function.offset(*zip(batch, product.a_batch, strict=True), (row, product.a_strides[0]))
            left = self._left(function.element(self.a, start, a_type))
            steps, last = product.k, 0
            if choice.along == "inner":
                steps, last = product.k // choice.width, product.k % choice.width
            sums = sum_products(self.lanes, Tile(rows, actives, steps, last, choice.chains), left, right)
            self._store(sums, batch, row, column, actives)

        whole = product.m // choice.rows * choice.rows
        if whole:
            with function.loop(0, whole, choice.rows) as row:
                tile(row, choice.rows)
        if whole < product.m:
            tile(whole, product.m - whole)

    def _left(self, pointer: str) -> Factor:
        product, choice = self.product, self.choice
        row, inner = product.a_strides
        if choice.along == "inner":
            return Factor(pointer, row, inner * choice.width, inner, product.a_dtype)
        lane = product.a_batch[choice.axis] if choice.along == "batch" else 0
        return Factor(pointer, row, inner, lane, product.a_dtype)

    def _right(self, pointer: str) -> Factor:
        product, choice = self.product, self.choice
        inner, column = product.b_strides
        if choice.along == "columns":
            return Factor(pointer, column * choice.width, inner, column, product.b_dtype)
        if choice.along == "inner":
            return Factor(pointer, column, inner * choice.width, inner, product.b_dtype)
        return Factor(pointer, column, inner, product.b_batch[choice.axis], product.b_dtype)

    def _store(
        self,
        sums: Sequence[Sequence[str]],
        batch: Sequence[Index],
        row: Index,
        column: Index,
        actives: Sequence[int | None],
    ) -> None:
        product, choice, function = self.product, self.choice, self.function
        lanes, unit, stride, axis = self.lanes, 1, 0, len(batch) + 1
        if choice.along == "columns":
            unit, stride = choice.width, product.c_strides[1]
        elif choice.along == "batch":
            stride, axis = product.c_batch[choice.axis], choice.axis
        start = function.offset(
            *zip(batch, product.c_batch, strict=True), (row, product.c_strides[0]), (column, product.c_strides[1])
        )
        corner = function.element(self.c, start, memory_type(product.dtype))
        for i, values in enumerate(sums):
            for j, (total, active) in enumerate(zip(values, actives, strict=True)):
                value, place_of = total, lanes
                if choice.along == "inner":
                    value, place_of = lanes.sum_lanes(total), lanes.narrowed()
                value = self._finished(place_of, value)
                offset = i * product.c_strides[0] + j * unit * product.c_strides[1]
                if product.accumulate:
                    value = place_of.add(place_of.load(corner, offset, stride=stride, active=active), value)
                if self.epilogue is not None:
                    here = (function.add(row, i), function.add(column, j * unit))
                    place = self._place(batch, here, axis, active)
                    finished = self.epilogue.write(self.others, place_of, value, place)
                    if finished is None:
                        continue
                    value = finished
                place_of.store(value, corner, offset, stride=stride, active=active)

    def _finished(self, lanes: Lanes, value: str) -> str:
        return value if self.product.alpha == 1 else lanes.mul(lanes.constant(self.product.alpha), value)

    def _place(self, batch: Sequence[Index], here: tuple[Index, Index], axis: int, active: int | None) -> Place:
        if self.turned:
            here = here[::-1]
            axis = 2 * len(batch) + 1 - axis if axis >= len(batch) else axis
        return Place((*batch, *here), axis, active)


# --- nodes ----------------------------------------------------------------------------------------------------------------
_COMPUTED = frozenset(np.dtype(name) for name in ("f4", "f8", "i4", "i8"))


def _supports(node: Node) -> str | None:
    dtype = node.outputs[0].type.dtype
    return None if dtype in _COMPUTED else f"matmul of {dtype} is not one of sums and products"


@emits(matmul, supports=_supports)
def _emit_matmul(
    emission: Emission, _node: Node, operands: Sequence[Stored], results: Sequence[Stored], _scratch: str
) -> None:
    a, b = operands
    (c,) = results
    emit_product(emission, described(a, b, c), (a.pointer, b.pointer, c.pointer))
