"""The loops of a product over tiles that are held in registers.

    batch > blocks of the contracted axis > strips of rows > panels of columns > tiles > steps

How long blocks, strips and panels are, and what lanes stand for, has been chosen before (`tile_choice`).
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Literal

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.kernels.packed_panels import Panel, pack
from pullback.backends.native.kernels.product import Product
from pullback.backends.native.kernels.tile_choice import Choice, choose, parts
from pullback.backends.native.kernels.tile_results import Along, pieces_of
from pullback.backends.native.kernels.tiles import Column, Factor, Sums, Tile, sum_products
from pullback.dataclass import dataclass

_LINE = 64

#: Locality of prefetches: into the second cache, since the first is for what is used now.
_NEAR = 2

#: A matrix of more bytes is not in the second cache when it is read.
_FAR_BYTES = 1 << 19

#: Tiles of a panel, at the least, among which bringing the next one is shared out.
_LEAST_TILES = 4


def _is_far(product: Product) -> bool:
    """True if columns come from beyond the second cache, in lines of many numbers."""
    return product.b_strides[1] == 1 and product.k * product.n * product.b_dtype.itemsize > _FAR_BYTES


def write_tiles(
    function: Function,
    product: Product,
    pointers: Sequence[str],
    *,
    choice: Choice | None = None,
) -> None:
    """The loops of a product over tiles of our own, whatever its size; the choice may be that of a larger product."""
    if choice is None:
        choice = choose(product, function.module.vector_bits)
    _Writer(function, product, pointers, choice).write()


def write_in_two(
    function: Function, product: Product, pointers: Sequence[str], axis: Literal["m", "n"], first: int
) -> None:
    """The loops of a product whose first rows or columns are a product of their own, and so are the others."""
    for part, start in zip(parts(product, axis, first), (0, first), strict=True):
        row, column = (start, 0) if axis == "m" else (0, start)
        offsets = (
            (row * product.a_strides[0], product.a_dtype),
            (column * product.b_strides[1], product.b_dtype),
            (row * product.c_strides[0] + column * product.c_strides[1], product.dtype),
        )
        moved = [
            function.element(pointer, offset, memory_type(dtype))
            for pointer, (offset, dtype) in zip(pointers, offsets, strict=False)
        ]
        write_tiles(function, part, moved)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a product: where in the batch, how many lanes count there, which rows, which steps of the contracted axis."""

    batch: tuple[Index, ...]
    active: int | None
    row: Index
    rows: int
    step: Index
    steps: int
    accumulates: bool


class _Writer:
    """The loops of one product."""

    def __init__(self, function: Function, product: Product, pointers: Sequence[str], choice: Choice) -> None:
        self.function = function
        self.choice = choice
        self.transposed = self.choice.transposed
        self.product = product.transposed() if self.transposed else product
        a, b, self.c = pointers
        self.a, self.b = (b, a) if self.transposed else (a, b)
        self.lanes = Lanes(function, product.dtype, self.choice.width)
        self.unit = self.choice.width if self.choice.along == "columns" else 1
        copied = [(self.choice.packs, self.choice.panel_size), (self.choice.packs_rows, self.choice.strip_size)]
        self.packed, self.packed_rows = (
            function.slot(self.lanes.element, count=size, align=64) if packs else None for packs, size in copied
        )

    # --- the batch and the contracted axis ----------------------------------------------------------------------------
    def write(self) -> None:
        """Write the whole product."""
        choice = self.choice
        with ExitStack() as loops:
            batch: list[Index] = []
            for axis, size in enumerate(self.product.batch):
                start: Index = 0
                if choice.along != "batch" or axis != choice.axis:
                    start = loops.enter_context(self.function.loop(0, size))
                batch.append(start)
            if choice.along == "batch":
                self._vectors(batch)
            else:
                self._blocks(tuple(batch), None)

    def _vectors(self, batch: list[Index]) -> None:
        """Places of the batch, as many at a time as there are lanes."""
        size, axis = self.product.batch[self.choice.axis], self.choice.axis
        for start, active in self._cut(size, self.choice.width):
            with start as place:
                self._blocks((*batch[:axis], place, *batch[axis + 1 :]), active)

    def _blocks(self, batch: tuple[Index, ...], active: int | None) -> None:
        """The contracted axis in blocks: what tiles read of the matrices shall stay in the cache."""
        product, depth = self.product, self.choice.depth
        if depth >= product.k:
            self._strips(batch, active, 0, product.k, accumulates=product.accumulate)
            return
        if not product.accumulate:
            self._clear(batch)
        last = product.k % depth
        with self.function.loop(0, product.k - last, depth) as step:
            self._strips(batch, active, step, depth, accumulates=True)
        if last:
            self._strips(batch, active, product.k - last, last, accumulates=True)

    def _strips(
        self,
        batch: tuple[Index, ...],
        active: int | None,
        step: Index,
        steps: int,
        *,
        accumulates: bool,
    ) -> None:
        """The rows in strips, for the same reason."""
        product, height = self.product, self.choice.height
        for start, rest in self._cut(product.m, height):
            with start as row:
                part = _Part(batch, active, row, rest or height, step, steps, accumulates)
                self._pack_rows(part)
                self._panels(part)

    def _pack_rows(self, part: _Part) -> None:
        """The rows of a part, if they are to be copied: those of a tile next to each other at every step."""
        if self.packed_rows is None:
            return
        inner_last = self.product.a_strides[::-1]
        for start, rest in self._cut(part.rows, self.choice.rows):
            with start as row:
                rows = rest or self.choice.rows
                panel = Panel(part.steps, rows, *inner_last, rows, self.product.a_dtype)
                pack(
                    self.function,
                    panel,
                    self._left(part, row).pointer,
                    self._place_of_rows(row),
                    min(8, self.lanes.width),
                )

    def _place_of_rows(self, row: Index) -> str:
        offset = self.function.mul(row, self.choice.depth)
        return self.function.element(self.packed_rows or "", offset, memory_type(self.product.a_dtype))

    def _clear(self, batch: Sequence[Index]) -> None:
        """Zeros in C."""
        product, function = self.product, self.function
        (long, far), (short, near) = sorted(
            zip((product.m, product.n), product.c_strides, strict=True), key=lambda axis: -abs(axis[1])
        )
        width = self.lanes.width if near == 1 else 1
        with function.loop(0, long) as line:
            offset = function.offset(*zip(batch, product.c_batch, strict=True), (line, far))
            start = function.element(self.c, offset, self.lanes.element)
            for place, active in self._cut(short, width):
                with place as column:
                    lanes = Lanes(function, product.dtype, width)
                    lanes.store(lanes.constant(0), start, function.mul(column, near), active=active)

    def _cut(self, size: int, step: int) -> Iterator[tuple[AbstractContextManager[Index], int | None]]:
        """An axis as a loop over whole steps, and the rest with how long it is."""
        whole = size // step * step
        if whole:
            yield self.function.loop(0, whole, step), None
        if whole < size:
            yield nullcontext(whole), size - whole

    # --- tiles --------------------------------------------------------------------------------------------------------
    def _panels(self, part: _Part) -> None:
        """Write all columns, a few at a time."""
        for start, rest in self._cut(self.product.n, self.choice.columns * self.unit):
            with start as column:
                self._rows(part, column, self._columns(part, rest or self.choice.columns * self.unit))

    def _columns(self, part: _Part, size: int) -> tuple[Column, ...]:
        """The columns of a tile; where lanes are columns, the last may be as many as half a vector or less can hold."""
        whole, rest = divmod(size, self.unit)
        columns = (Column(self.lanes, part.active),) * whole
        if not rest:
            return columns
        width = 1 << (rest - 1).bit_length()
        return (*columns, Column(Lanes(self.function, self.product.dtype, width), rest if rest < width else None))

    def _rows(self, part: _Part, column: Index, columns: tuple[Column, ...]) -> None:
        """Write all rows of a few columns, a few at a time."""
        choice, function = self.choice, self.function
        right = self._right(part, column)
        if self.packed is not None:
            right = self._packed(part, right.pointer, columns)
        steps, last = (part.steps, 0) if choice.along != "inner" else divmod(part.steps, choice.width)
        for start, rest in self._cut(part.rows, choice.rows):
            with start as row:
                tile = Tile(rest or choice.rows, columns, steps, last, choice.chains)
                left = self._left(part, row)
                if self.packed_rows is not None:
                    left = Factor(self._place_of_rows(row), 1, tile.rows, 0, self.product.a_dtype)
                here = function.add(part.row, row)
                if rest is None:
                    self._fetch_ahead(part, row, column)
                self._store(part, columns, sum_products(tile, left, right), here, column)

    def _fetch_ahead(self, part: _Part, row: Index, column: Index) -> None:
        """Have a piece of the next panel brought nearer, so that all of it is near once the last rows of this one are done.

        Of the weight gradient 512 x 128 x 1600, behind a loop, this saves 2 %. Behind the last panel nothing is there to be
        brought, which does no harm.
        """
        product, choice, function = self.product, self.choice, self.function
        tiles = part.rows // choice.rows
        if self.packed is None or tiles < _LEAST_TILES or not _is_far(product):
            return
        size, dtype = choice.columns * self.unit, product.b_dtype
        steps = -(-part.steps // tiles)
        done = function.mul(row, steps)
        first = done // choice.rows if isinstance(done, int) else function.value(f"udiv i64 {done}, {choice.rows}")
        following = self._right(part, function.add(column, size)).pointer
        fetch = function.module.declare("llvm.prefetch.p0", "void", "ptr", "i32 immarg", "i32 immarg", "i32 immarg")
        with function.loop(0, steps) as turn:
            line = function.mul(function.add(first, turn), product.b_strides[0])
            for place in range(0, size, _LINE // dtype.itemsize):
                pointer = function.element(following, function.add(line, place), memory_type(dtype))
                function.call("void", fetch, ("ptr", pointer), ("i32", 0), ("i32", _NEAR), ("i32", 1))

    def _packed(self, part: _Part, start: str, columns: Sequence[Column]) -> Factor:
        """The columns of a tile, copied so that they are adjacent: a line is a step, or a column."""
        choice, dtype = self.choice, self.product.b_dtype
        inner, across = self.product.b_strides
        target, width, line = self.packed or "", choice.width, choice.panel_line
        lanes_are_columns = choice.along == "columns"
        if lanes_are_columns:
            size = sum(column.active or column.lanes.width for column in columns)
            panel, (entry, step) = Panel(part.steps, size, inner, across, line, dtype), (width, line)
        else:
            panel, (entry, step) = Panel(len(columns), part.steps, across, inner, line, dtype), (line, width)
        pack(self.function, panel, start, target, min(8, width))
        # A lane that no column has may hold anything; one that no step has would be added to the sum.
        return Factor(target, entry, step, 1, dtype, is_padded=lanes_are_columns)

    def _left(self, part: _Part, row: Index) -> Factor:
        """The numbers of A that tiles of a row of the part read."""
        product, choice = self.product, self.choice
        across, inner = product.a_strides
        start = self.function.offset(
            *zip(part.batch, product.a_batch, strict=True), (part.row, across), (row, across), (part.step, inner)
        )
        pointer = self.function.element(self.a, start, memory_type(product.a_dtype))
        if choice.along == "inner":
            return Factor(pointer, across, inner * choice.width, inner, product.a_dtype)
        lane = product.a_batch[choice.axis] if choice.along == "batch" else 0
        return Factor(pointer, across, inner, lane, product.a_dtype)

    def _right(self, part: _Part, column: Index) -> Factor:
        """The numbers of B that tiles of a column read."""
        product, choice = self.product, self.choice
        inner, across = product.b_strides
        start = self.function.offset(
            *zip(part.batch, product.b_batch, strict=True), (part.step, inner), (column, across)
        )
        pointer = self.function.element(self.b, start, memory_type(product.b_dtype))
        if choice.along == "columns":
            return Factor(pointer, across * choice.width, inner, across, product.b_dtype)
        if choice.along == "inner":
            return Factor(pointer, across, inner * choice.width, inner, product.b_dtype)
        return Factor(pointer, across, inner, product.b_batch[choice.axis], product.b_dtype)

    def _store(self, part: _Part, columns: Sequence[Column], sums: Sums, row: Index, column: Index) -> None:
        """The destination of the sums of a tile."""
        product, function = self.product, self.function
        along_batch = product.c_batch[self.choice.axis] if self.choice.along == "batch" else 0
        strides: dict[Along, int] = {
            "rows": product.c_strides[0],
            "columns": product.c_strides[1],
            "places": along_batch,
        }
        start = function.offset(
            *zip(part.batch, product.c_batch, strict=True), *zip((row, column), product.c_strides, strict=True)
        )
        corner = function.element(self.c, start, memory_type(product.dtype))
        for piece in pieces_of(self.choice, product, columns, sums):
            lanes, value, stride = piece.lanes, piece.value, strides[piece.along]
            offset = piece.row * strides["rows"] + piece.column * strides["columns"] + piece.place * along_batch
            if product.alpha != 1:
                value = lanes.mul(lanes.constant(product.alpha), value)
            if part.accumulates:
                value = lanes.add(lanes.load(corner, offset, stride=stride, active=piece.active), value)
            lanes.store(value, corner, offset, stride=stride, active=piece.active)
