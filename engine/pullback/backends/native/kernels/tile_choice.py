"""The choice of tiles of a product, by counting cycles.

A tile of r rows and c columns is r * c sums in registers; each step of the contracted axis loads r + c entries and does r * c
multiplications and additions. Lanes are columns, steps of the contracted axis, or places of the batch; and every product
can be transposed, C' = B' A', so that lanes are rows. The counts are those of a core that does two operations on vectors of 256
bits and two loads at a time, with 8-way caches of 32 KiB and 1 MiB; only their ratios matter, and for the shapes of
`benchmarks/native_products.py` the choices were compared with the others.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from pullback.backends.native.kernels.product import Product, places
from pullback.dataclass import dataclass

_OPERATION, _LOADED, _STORED = 0.5, 0.5, 1.0
_DATAPATH = 32  # bytes that one operation handles; wider vectors take two
_CONTENTION = 0.15  # of what loads take, that operations are late for them
_LATENCY = 4.0  # until the result of a multiplication and addition can be added to
_DECODED = 5.0  # instructions begun per cycle
_TILE = 8.0  # before and after the steps of a tile
_PANEL = 30.0  # before and after a panel is copied
_LINE_COPIED = 3.0  # for a line of what is copied, beside its vectors
_BLOCK_TRANSPOSED, _ONE_COPIED = 0.5, 2.0  # for a number of what is copied otherwise
_DOUBT = 0.05  # how much copying must gain; with 0.03 nine of eleven products that it decides take 1 to 5 % longer
_APART = 0.03  # how much cutting in two must gain
_AGAIN = 0.125  # for a byte of the result that is read and written once more

_LINE = 64
#: Bytes, and cycles for a line that is not there but in the next: one far from the last, and one that follows it.
_CACHES = ((32 * 1024, 3.0, 1.0), (1024 * 1024, 10.0, 2.5))
_WAYS = 8
_EXPOSED = 0.5  # of the cycles for rows that lie far apart, while nothing else is done

#: Most bytes of the panels and strips that are copied: they lie on the stack, and in the second cache.
_PANEL_BYTES, _STRIP_BYTES = 96 * 1024, 192 * 1024
_STRIP_ROWS = (192, 96)

#: A matrix of more bytes is read a few lines at a time for a product with a vector.
_STREAMED_BYTES, _STREAMED_STEPS = 256 * 1024, 8


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to cut a product."""

    transposed: bool
    along: Literal["columns", "inner", "batch"]
    """The axis that lanes stand for."""
    width: int
    rows: int
    columns: int
    depth: int
    """The number of steps of the contracted axis that are done at a time."""
    height: int
    """The number of rows that are done at a time."""
    chains: int = 1
    packs: bool = False
    """True if the columns of a tile are copied first, so that they are adjacent."""
    packs_rows: bool = False
    """True if the rows are, as many as are done at a time."""
    axis: int = -1
    """The axis of the batch that lanes stand for."""

    @property
    def panel_line(self) -> int:
        """Numbers in a line of copied columns: a step of all of them, or all steps of one, with room for whole vectors."""
        return self.width * (self.columns if self.along == "columns" else -(-self.depth // self.width))

    @property
    def panel_size(self) -> int:
        """Numbers in all lines of copied columns."""
        return self.panel_line * (self.depth if self.along == "columns" else self.columns)

    @property
    def strip_size(self) -> int:
        """Numbers in copied rows."""
        return self.height * self.depth


def registers(vector_bits: int) -> int:
    """The number of vector registers: 32 with AVX-512, else 16 are assumed."""
    return 32 if vector_bits == 512 else 16


def full_width(vector_bits: int, dtype: np.dtype[Any]) -> int:
    """The number of elements of a dtype in a vector."""
    return max(1, vector_bits // (8 * dtype.itemsize))


def choose(product: Product, vector_bits: int) -> Choice:
    """The cheapest way."""
    return _cheapest(product, vector_bits)[1]


def cycles_of_product(product: Product, vector_bits: int) -> float:
    """The cost of the cheapest way."""
    return _cheapest(product, vector_bits)[0]


def lanes_apart(product: Product, vector_bits: int) -> tuple[Literal["m", "n"], int] | None:
    """A cut of a product in two, along the axis of the lanes, so that the first part fills its vectors; None if slower.

    What is left over is another product then, cut in its own way: four columns of a hundred are a fourth of a vector of 16
    for each row, but where A lies so that lanes may be rows, they are full vectors. 96 + 4 columns of f4[100, 100] take 17.3
    us so, instead of 17.9.
    """
    cycles, choice = _cheapest(product, vector_bits)
    axis: Literal["m", "n"] = "m" if choice.transposed else "n"
    size = product.m if choice.transposed else product.n
    whole = size // choice.width * choice.width
    if choice.along != "columns" or not 0 < whole < size:
        return None
    apart = sum(_cheapest(part, vector_bits)[0] for part in parts(product, axis, whole))
    return (axis, whole) if apart < (1.0 - _APART) * cycles else None


def parts(product: Product, axis: Literal["m", "n"], first: int) -> tuple[Product, Product]:
    """A product cut in two along its rows or its columns."""
    if axis == "m":
        return replace(product, m=first), replace(product, m=product.m - first)
    return replace(product, n=first), replace(product, n=product.n - first)


@lru_cache(maxsize=1024)
def _cheapest(product: Product, vector_bits: int) -> tuple[float, Choice]:
    transposed = product.transposed()
    ways = [
        (_cost(candidate, transposed if candidate.transposed else product), number, candidate)
        for number, candidate in enumerate(_candidates(product, vector_bits))
    ]
    cycles, _, choice = min(ways)
    return cycles, choice


# --- candidates -----------------------------------------------------------------------------------------------------------
def _candidates(product: Product, vector_bits: int) -> Iterator[Choice]:
    full = full_width(vector_bits, product.dtype)
    for transposed in (False, True):
        seen = product.transposed() if transposed else product
        width = _width(seen.n, full)
        for rows, columns in _tiles(seen.m, -(-seen.n // width), vector_bits):
            plain = Choice(transposed, "columns", width, rows, columns, _depth(seen), seen.m, _chains(rows, columns))
            yield plain
            yield from _packing(plain, seen)
        width = _width(seen.k, full)
        # Steps that do not count must be 0 in both factors; one that is repeated would be in every lane.
        repeated = 0 in (seen.a_strides[1], seen.b_strides[0])
        for rows, columns in () if repeated else _tiles(seen.m, seen.n, vector_bits):
            plain = Choice(transposed, "inner", width, rows, columns, max(1, seen.k), seen.m, _chains(rows, columns))
            yield plain
            if seen.b_strides[0] != 1 and columns * seen.k * seen.dtype.itemsize <= _PANEL_BYTES and _is_plain(seen):
                yield replace(plain, packs=True)
        for axis, size in enumerate(seen.batch):
            width = _width(size, full)
            for rows, columns in _tiles(seen.m, seen.n, vector_bits):
                chains = _chains(rows, columns)
                yield Choice(transposed, "batch", width, rows, columns, max(1, seen.k), seen.m, chains, axis=axis)


def _depth(product: Product) -> int:
    """The number of steps done at a time: all; of a large matrix times a vector a few, to read it line by line."""
    large = product.k * product.n * product.b_dtype.itemsize > _STREAMED_BYTES
    return _STREAMED_STEPS if product.m == 1 and large and product.k > 8 * _STREAMED_STEPS else max(1, product.k)


def _is_plain(product: Product) -> bool:
    """True if nothing is converted, and nothing repeated instead of being there."""
    return product.a_dtype == product.b_dtype == product.dtype and 0 not in product.b_strides


def _packing(plain: Choice, product: Product) -> Iterator[Choice]:
    """The same with columns copied first, and with rows as well."""
    if not _is_plain(product) or plain.depth < product.k:
        return
    step_bytes = plain.columns * plain.width * product.dtype.itemsize
    packing = replace(plain, packs=True, depth=_block(product.k, _PANEL_BYTES // step_bytes, 8))
    yield packing
    for most in _STRIP_ROWS if product.m > plain.rows and product.a_strides[0] == 1 else ():
        height = _block(product.m, most, plain.rows)
        depth = _block(product.k, min(packing.depth, _STRIP_BYTES // (height * product.dtype.itemsize)), 8)
        yield replace(packing, packs_rows=True, height=height, depth=depth)
        yield replace(plain, packs_rows=True, height=height, depth=depth)


def _block(size: int, most: int, multiple: int) -> int:
    """Length of equal blocks, at most a given one, in whole multiples."""
    if size <= most:
        return max(1, size)
    even = -(-size // -(-size // most))
    return min(-(-even // multiple) * multiple, max(multiple, most // multiple * multiple))


def _width(size: int, full: int) -> int:
    """The width of a register, or of the part of it that is enough."""
    width = full
    while width > 1 and width // 2 >= size:
        width //= 2
    return width


def _tiles(rows: int, columns: int, vector_bits: int) -> Iterator[tuple[int, int]]:
    """Rows and columns of tiles that fit the registers, rows shared out evenly.

    More than eight rows, far apart by a power of two, would not fit one set of the cache.
    """
    held = registers(vector_bits)
    for wide in range(1, min(columns, 8) + 1):
        most = min(rows, (held - wide - 1) // wide, 8)
        if most < 1:
            return
        yield -(-rows // -(-rows // most)), wide


def _chains(rows: int, columns: int) -> int:
    return max(1, 8 // (rows * columns))


# --- their costs ----------------------------------------------------------------------------------------------------------
def _cost(choice: Choice, product: Product) -> float:
    steps = -(-product.k // choice.width) if choice.along == "inner" else product.k
    unit = choice.width if choice.along == "columns" else 1
    step = choice.columns * unit
    total = 0.0
    for wide, panels in ((step, product.n // step), (product.n % step, 1)):
        if wide and panels:
            whole, rest = divmod(product.m, choice.rows)
            columns = [choice.width] * (wide // unit) + ([1 << (wide % unit - 1).bit_length()] if wide % unit else [])
            total += panels * whole * _tile(choice, product, choice.rows, columns, steps)
            total += panels * _tile(choice, product, rest, columns, steps) if rest else 0.0
    doubt = 1.0 + _DOUBT * (choice.packs + choice.packs_rows)
    return (total * doubt + _packing_cost(choice, product)) * _rounds(choice, product)


def _tile(choice: Choice, product: Product, rows: int, columns: list[int], steps: int) -> float:
    a_lane, b_lane, _ = _lane_strides(choice, product)
    size = product.dtype.itemsize
    operations = rows * sum(max(1.0, size * width / _DATAPATH) * _OPERATION for width in columns)
    loads = rows * _load(a_lane, columns[0], size)
    loads += sum(_load(1 if choice.packs else b_lane, width, size, aligned=choice.packs) for width in columns)
    instructions = rows * len(columns) + rows + len(columns)
    beside, on_top = _fetching(choice, product, rows, columns)
    step = max(operations, loads + beside, instructions / _DECODED, _LATENCY / choice.chains)
    step += _CONTENTION * loads + on_top
    chains = rows * len(columns) * (choice.chains - 1) * _OPERATION
    return steps * step + chains + _storing(choice, product, rows, columns) + _TILE


def _rounds(choice: Choice, product: Product) -> int:
    if choice.along != "batch":
        return places(product)
    size = product.batch[choice.axis]
    return places(product) // size * -(-size // choice.width)


def _packing_cost(choice: Choice, product: Product) -> float:
    """Cycles for what is copied, and for reading and writing the result once more for every block of steps."""
    total = 0.0
    if choice.packs:
        inner, across = product.b_strides
        if choice.along == "columns":
            together, strips = min(product.n, choice.columns * choice.width), -(-product.m // choice.height)
        else:
            inner, across, together, strips = across, inner, product.k, 1
        total += strips * product.n * (product.k * _copied(inner, across, together) + _PANEL / together)
    if choice.packs_rows:
        total += product.m * product.k * _copied(product.a_strides[1], product.a_strides[0], choice.rows)
    again = -(-product.k // choice.depth) - 1
    return total + again * product.m * product.n * product.dtype.itemsize * _AGAIN


def _copied(step: int, across: int, together: int) -> float:
    """Cycles to copy lines of a given length."""
    if across == 1:
        vectors, rest = divmod(together, 8)
        return (vectors + rest.bit_count() + _LINE_COPIED) / together
    return _BLOCK_TRANSPOSED if step == 1 else _ONE_COPIED


def _lane_strides(choice: Choice, product: Product) -> tuple[int, int, int]:
    if choice.along == "columns":
        return 0, product.b_strides[1], product.c_strides[1]
    if choice.along == "inner":
        return product.a_strides[1], product.b_strides[0], 1
    axis = choice.axis
    return product.a_batch[axis], product.b_batch[axis], product.c_batch[axis]


def _load(stride: int, width: int, size: int, *, aligned: bool = False) -> float:
    """Cycles to load a vector: one that is not aligned may take two lines; numbers apart are put together one by one."""
    if width == 1 or stride == 0:
        return _LOADED
    if stride != 1:
        return 1.5 * width
    return _LOADED * max(1.0, size * width / _DATAPATH) * (1.0 if aligned else 1.0 + size * width / _LINE)


def _storing(choice: Choice, product: Product, rows: int, columns: list[int]) -> float:
    """Cycles to store a tile; lanes that are not adjacent are transposed if entries are, else stored one by one."""
    if choice.along == "inner":
        return rows * len(columns) * (_STORED + 1.5 * choice.width.bit_length())
    stride = _lane_strides(choice, product)[2]
    entries = [(product.c_strides[0], rows)]
    if choice.along == "batch":
        entries = [(product.c_strides[1], len(columns)), *entries]
    transposed = next((count for along, count in entries if turns(stride, along, count, choice.width)), 0)
    cycles = 0.0
    for width in columns:
        if stride == 1 or width == 1:
            cycles += rows * _STORED
        elif transposed and width > 1:
            side = min(width, 1 << (transposed - 1).bit_length())
            cycles += rows * width / transposed * (side.bit_length() + 1)
        else:
            cycles += rows * 3.0 * width
    return cycles


def turns(lane_stride: int, stride: int, entries: int, width: int) -> bool:
    """True if lanes and entries change places before they are stored."""
    return lane_stride != 1 and stride == 1 and entries > 1 and width > 1


def _fetching(choice: Choice, product: Product, rows: int, columns: list[int]) -> tuple[float, float]:
    """Cycles of a step for what the first cache has lost since it was last read: beside the operations, and on top."""
    size, lanes = product.dtype.itemsize, choice.width if choice.along == "inner" else 1
    if choice.along == "batch":
        return 0.0, 0.0
    beside = on_top = 0.0
    if product.m > choice.rows:  # columns are read again for the next rows
        used = (sum(columns) if choice.along == "columns" else len(columns) * lanes) * size
        if choice.packs or choice.along == "inner":
            beside += _in_order(used, choice.depth * (sum(columns) if lanes == 1 else len(columns)) * size)
        else:
            beside += _apart(product.k, abs(product.b_strides[0]) * size, used)
    if product.n > (len(columns) if lanes > 1 else sum(columns)):  # and rows for the next columns
        used, strip = rows * lanes * size, min(choice.height, product.m) * choice.depth * size
        if choice.packs_rows or product.a_strides[1] == 1:
            beside += _in_order(used, strip)
        else:
            kept_apart = _apart(product.k, abs(product.a_strides[1]) * size, used)
            on_top += _EXPOSED * max(kept_apart, 3.0 * _in_order(used, strip))
    return beside, on_top


def _in_order(used: int, total: int) -> float:
    """Cycles for some bytes of many that are read one after the other, again and again."""
    return next((cycles for size, _, cycles in reversed(_CACHES) if total > size * 3 // 4), 0.0) * used / _LINE


@lru_cache(maxsize=4096)
def _apart(steps: int, stride: int, used: int) -> float:
    """Cycles for the cache lines of a step, which are a stride apart and of which these bytes are used."""
    lines = -(-used // _LINE)
    cycles = 0.0
    for size, penalty, _ in _CACHES:
        sets = size // (_LINE * _WAYS)
        distant = sets if stride % _LINE else min(sets, sets * _LINE // math.gcd(stride, sets * _LINE) * lines)
        if steps * lines > distant * _WAYS * 3 // 4:
            cycles = penalty * lines
    return cycles
