"""How a product is cut into tiles, chosen by counting instructions.

A tile of r rows and c columns is r * c sums in registers; each step of the contracted axis loads r + c entries and does r * c
multiplications and additions. Lanes are columns, steps of the contracted axis, or places of the batch; and every product
can be turned, C' = B' A', so that lanes are rows. The counts below are cycles of a core that does two vector operations
and two loads at a time; only their ratios matter.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pullback.backends.native.kernels.product import Product, places

_MULTIPLY, _LOAD, _STORE = 0.5, 0.5, 1.0
_LATENCY = 4.0  # cycles until the result of a multiplication and addition can be added to
_PACKED_BLOCKWISE, _PACKED_SINGLY = 0.5, 2.0  # cycles for a number of a panel
_TILE = 8.0  # cycles before and after the steps of a tile


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to cut a product."""

    turned: bool
    along: Literal["columns", "inner", "batch"]
    """What lanes stand for."""
    width: int
    rows: int
    columns: int
    chains: int = 1
    packs: bool = False
    """Whether columns are copied first to where they lie next to each other."""
    axis: int = -1
    """The axis of the batch that lanes stand for."""


def registers(vector_bits: int) -> int:
    """How many vectors the processor holds: 32 with AVX-512, else 16 are counted on."""
    return 32 if vector_bits == 512 else 16


@lru_cache(maxsize=1024)
def choose(product: Product, vector_bits: int) -> Choice:
    """The cheapest way."""
    ways = [
        (_cost(candidate, product.turned() if candidate.turned else product), number, candidate)
        for number, candidate in enumerate(_candidates(product, vector_bits))
    ]
    return min(ways)[2]


def _candidates(product: Product, vector_bits: int) -> Iterator[Choice]:
    full = max(1, vector_bits // (8 * product.dtype.itemsize))
    for turned in (False, True):
        seen = product.turned() if turned else product
        for width in _widths(seen.n, full):
            for columns, rows in _tiles(-(-seen.n // width), seen.m, vector_bits):
                yield Choice(turned, "columns", width, rows, columns, _chains(rows, columns))
                if seen.b_strides[1] not in (0, 1) and seen.a_dtype == seen.b_dtype:
                    yield Choice(turned, "columns", width, rows, columns, _chains(rows, columns), packs=True)
        for width in _widths(seen.k, full):
            for columns, rows in _tiles(seen.n, seen.m, vector_bits):
                yield Choice(turned, "inner", width, rows, columns, _chains(rows, columns))
        for axis, size in enumerate(seen.batch):
            for width in _widths(size, full):
                for columns, rows in _tiles(seen.n, seen.m, vector_bits):
                    yield Choice(turned, "batch", width, rows, columns, _chains(rows, columns), axis=axis)


def _widths(size: int, full: int) -> Iterator[int]:
    """The width of a register, or of the part of it that is enough."""
    width = full
    while width > 1 and width // 2 >= size:
        width //= 2
    if width > 1 and size > 1:
        yield width
    elif full == 1 or size <= 1:
        yield 1


def _tiles(columns: int, rows: int, vector_bits: int) -> Iterator[tuple[int, int]]:
    """Columns and rows of tiles that fit the registers, rows shared out evenly."""
    held = registers(vector_bits)
    for wide in range(1, min(columns, 8) + 1):
        most = min(rows, (held - wide - 1) // wide, 14)
        if most < 1:
            return
        yield wide, -(-rows // -(-rows // most))


def _chains(rows: int, columns: int) -> int:
    return max(1, 8 // (rows * columns))


def _cost(choice: Choice, product: Product) -> float:
    unit = choice.width if choice.along == "columns" else 1
    steps = -(-product.k // choice.width) if choice.along == "inner" else product.k
    a_lane, b_lane, c_lane = _lane_strides(choice, product)
    width = choice.width
    left, right = _load(a_lane, width), _load(1 if choice.packs else b_lane, width)
    store = _STORE if c_lane == 1 else 2.0 * width
    if choice.along == "inner":
        store += 4.0 + 2 * width.bit_length()

    def tile(rows: int, columns: int) -> float:
        sums = rows * columns
        step = max(
            sums * _MULTIPLY, rows * left + columns * right, (sums + rows + columns) / 5, _LATENCY / choice.chains
        )
        return steps * step + sums * (store + choice.chains * 0.5) + _TILE

    columns = -(-product.n // unit)
    total = 0.0
    for wide, panels in ((choice.columns, columns // choice.columns), (columns % choice.columns, 1)):
        if wide and panels:
            rest = product.m % choice.rows
            total += panels * (product.m // choice.rows * tile(choice.rows, wide) + (tile(rest, wide) if rest else 0.0))
    if choice.packs:
        total += product.k * product.n * (_PACKED_BLOCKWISE if product.b_strides[0] == 1 else _PACKED_SINGLY)
    many = places(product)
    if choice.along == "batch":
        size = product.batch[choice.axis]
        many = many // size * -(-size // width)
    return total * many


def _lane_strides(choice: Choice, product: Product) -> tuple[int, int, int]:
    if choice.along == "columns":
        return 0, product.b_strides[1], product.c_strides[1]
    if choice.along == "inner":
        return product.a_strides[1], product.b_strides[0], 1
    return tuple(strides[choice.axis] for strides in (product.a_batch, product.b_batch, product.c_batch))  # type: ignore[return-value]


def _load(stride: int, width: int) -> float:
    """Cycles to load a vector: numbers apart are put together one by one."""
    return _LOAD if width == 1 or stride in (0, 1) else 1.5 * width
