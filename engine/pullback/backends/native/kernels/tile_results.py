"""Pieces: the sums of a tile in the form in which they are stored.

Lanes that are not adjacent in the result would be stored one by one. Where rows or columns of the tile lie next to each
other instead, the sums are transposed in registers first, so that these become the lanes.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.native.kernels.packed_panels import transposed
from pullback.backends.native.kernels.product import Product
from pullback.backends.native.kernels.tile_choice import Choice, turns
from pullback.backends.native.kernels.tiles import Column, Sums
from pullback.dataclass import dataclass

Along: TypeAlias = Literal["rows", "columns", "places"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Numbers that are stored together; row, column and place of the first, counted from the corner of the tile."""

    row: int
    column: int
    place: int
    """The place along the axis of the batch that lanes stood for."""
    along: Along
    """The axis of its lanes."""
    lanes: Lanes
    value: str
    active: int | None = None
    """The number of lanes that count; None for all."""


def pieces_of(choice: Choice, product: Product, columns: Sequence[Column], sums: Sums) -> Iterator[Piece]:
    """All sums of a tile of a product, which is transposed already if the choice says so."""
    if choice.along == "inner":
        for row, values in enumerate(sums):
            for column, (value, form) in enumerate(zip(values, columns, strict=True)):
                yield Piece(row, column, 0, "columns", form.lanes.narrowed(), form.lanes.sum_lanes(value))
    elif choice.along == "columns":
        yield from _pieces_of_columns(choice, product, columns, sums)
    else:
        yield from _pieces_of_places(choice, product, columns, sums)


def _pieces_of_columns(choice: Choice, product: Product, columns: Sequence[Column], sums: Sums) -> Iterator[Piece]:
    for number, form in enumerate(columns):
        first = number * choice.width
        if turns(product.c_strides[1], product.c_strides[0], len(sums), form.lanes.width):
            for row, lane, transposed in _transposed(form, [values[number] for values in sums]):
                yield Piece(row, first + lane, 0, "rows", *transposed)
        else:
            for row, values in enumerate(sums):
                yield Piece(row, first, 0, "columns", form.lanes, values[number], form.active)


def _pieces_of_places(choice: Choice, product: Product, columns: Sequence[Column], sums: Sums) -> Iterator[Piece]:
    (form, *_), stride = columns, product.c_batch[choice.axis]
    if turns(stride, product.c_strides[1], len(columns), form.lanes.width):
        for row, values in enumerate(sums):
            for column, lane, transposed in _transposed(form, values):
                yield Piece(row, column, lane, "columns", *transposed)
    elif turns(stride, product.c_strides[0], len(sums), form.lanes.width):
        for column in range(len(columns)):
            for row, lane, transposed in _transposed(form, [values[column] for values in sums]):
                yield Piece(row, column, lane, "rows", *transposed)
    else:
        for row, values in enumerate(sums):
            for column, value in enumerate(values):
                yield Piece(row, column, 0, "places", form.lanes, value, form.active)


def _transposed(form: Column, values: Sequence[str]) -> Iterator[tuple[int, int, tuple[Lanes, str, int | None]]]:
    """Lanes of several values as values of their own: number of the first value in it, number of the lane, and its form."""
    lanes, count = form.lanes, form.active or form.lanes.width
    for first in range(0, len(values), lanes.width):
        chosen = values[first : first + lanes.width]
        side = min(lanes.width, 1 << (len(chosen) - 1).bit_length())
        group = Lanes(lanes.function, lanes.dtype, side)
        for base in range(0, count, side):
            rows = [_part(lanes, value, base, side) for value in chosen]
            columns = transposed(group, rows + [group.constant(0)] * (side - len(rows)))
            for lane in range(base, min(base + side, count)):
                yield first, lane, (group, columns[lane - base], len(chosen) if len(chosen) < side else None)


def _part(lanes: Lanes, value: str, start: int, width: int) -> str:
    """Some neighbouring lanes as a value of their own."""
    if width == lanes.width:
        return value
    if width == 1:
        return lanes.lane(value, start)
    order = ", ".join(f"i32 {lane}" for lane in range(start, start + width))
    return lanes.function.value(f"shufflevector {lanes.type} {value}, {lanes.type} poison, <{width} x i32> <{order}>")
