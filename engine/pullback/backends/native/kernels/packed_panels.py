"""Packing: a panel of a matrix copied so that its rows are adjacent."""

from typing import Any, TypeAlias

import numpy as np

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.dataclass import dataclass

#: For each lane of a vector, the element (row, lane) of the block in it.
_Origins: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Panel:
    """`steps` rows of `columns` numbers, `step` and `column` elements apart; packed, rows are `width` elements apart.

    What lies behind the columns of a packed row, up to the next whole vector, is overwritten where the width has room
    for it.
    """

    steps: int
    columns: int
    step: int
    column: int
    width: int
    dtype: np.dtype[Any]


def pack(function: Function, panel: Panel, source: str, target: str, lanes: int) -> None:
    """Copy a panel; by blocks that are transposed in registers where the numbers of a column lie next to each other."""
    if panel.step == 1 and lanes > 1:
        _pack_transposed(function, panel, source, target, lanes)
        return
    if panel.column == 1:
        _pack_rows(function, panel, source, target, lanes)
        return
    one = Lanes(function, panel.dtype, 1)
    with function.loop(0, panel.steps) as step, function.loop(0, panel.columns) as column:
        value = one.load(source, function.offset((step, panel.step), (column, panel.column)))
        one.store(value, target, function.offset((step, panel.width), (column, 1)))


def _pack_rows(function: Function, panel: Panel, source: str, target: str, lanes: int) -> None:
    """Rows that are contiguous, with as many vectors as they take."""
    vectors = Lanes(function, panel.dtype, lanes)
    with function.loop(0, panel.steps) as step:
        start = function.element(source, function.mul(step, panel.step), vectors.element)
        place = function.element(target, function.mul(step, panel.width), vectors.element)
        for column in range(0, panel.columns, lanes):
            active = min(lanes, panel.columns - column)
            value = vectors.load(start, column, active=active)
            vectors.store(value, place, column, active=_counted(panel, column, active, lanes))


def _pack_transposed(function: Function, panel: Panel, source: str, target: str, lanes: int) -> None:
    side = Lanes(function, panel.dtype, lanes)

    def block(step: Index, steps: int, column: Index, columns: int) -> None:
        start = function.element(source, function.offset((step, 1), (column, panel.column)), side.element)
        rows = [
            side.load(start, number * panel.column, active=steps if steps < lanes else None)
            if number < columns
            else side.constant(0)
            for number in range(lanes)
        ]
        place = function.element(target, function.offset((step, panel.width), (column, 1)), side.element)
        counted = _counted(panel, panel.columns - columns if columns < lanes else 0, columns, lanes)
        for number, values in enumerate(transposed(side, rows)[:steps]):
            side.store(values, place, number * panel.width, active=counted)

    def strip(column: Index, columns: int) -> None:
        whole = panel.steps // lanes * lanes
        if whole:
            with function.loop(0, whole, lanes) as step:
                block(step, lanes, column, columns)
        if whole < panel.steps:
            block(whole, panel.steps - whole, column, columns)

    whole = panel.columns // lanes * lanes
    if whole:
        with function.loop(0, whole, lanes) as column:
            strip(column, lanes)
    if whole < panel.columns:
        strip(whole, panel.columns - whole)


def _counted(panel: Panel, column: int, columns: int, lanes: int) -> int | None:
    """The number of lanes that may be stored from a column on; None for all, where there is room behind the columns."""
    return None if column + lanes <= panel.width else columns


def transposed(lanes: Lanes, rows: list[str]) -> list[str]:
    """A square block of as many rows as lanes, transposed.

    In each round every row is combined with the one whose number differs in one bit. Rounds within 16 bytes interleave,
    as the instructions unpcklps and unpcklpd do; those beyond exchange 16 bytes. Where each element is gets written
    down on the way, and the columns are found by that.
    """
    width = lanes.width
    held: list[tuple[str, _Origins]] = [
        (row, [(number, lane) for lane in range(width)]) for number, row in enumerate(rows)
    ]
    group = min(width, 16 // lanes.dtype.itemsize)
    bit = 1
    while bit < width:
        orders = _interleaving(width, group, bit) if bit < group else _exchanging(width, bit)
        following = list(held)
        for first in range(width):
            if first & bit == 0:
                pair = (held[first], held[first | bit])
                for place, order in zip((first, first | bit), orders, strict=True):
                    following[place] = (_shuffle(lanes, pair[0][0], pair[1][0], order), _follow(pair, order))
        held, bit = following, bit * 2
    found = {origins[0][1]: name for name, origins in held}
    return [found[lane] for lane in range(width)]


def _interleaving(width: int, group: int, unit: int) -> tuple[list[int], list[int]]:
    """Units of two vectors in turns, within groups of lanes: the lower half of each group, and the upper half."""

    def order(half: int) -> list[int]:
        lanes = []
        for lane in range(width):
            base, place = lane // group * group, lane % group
            number, within = place // unit, place % unit
            lanes.append((number % 2) * width + base + half * group // 2 + number // 2 * unit + within)
        return lanes

    return order(0), order(1)


def _exchanging(width: int, distance: int) -> tuple[list[int], list[int]]:
    """Groups of `distance` lanes of the first vector's other half against the second's."""
    low = [lane if lane & distance == 0 else width + lane - distance for lane in range(width)]
    high = [lane + distance if lane & distance == 0 else width + lane for lane in range(width)]
    return low, high


def _shuffle(lanes: Lanes, a: str, b: str, order: list[int]) -> str:
    places = ", ".join(f"i32 {place}" for place in order)
    return lanes.function.value(f"shufflevector {lanes.type} {a}, {lanes.type} {b}, <{lanes.width} x i32> <{places}>")


def _follow(pair: tuple[tuple[str, _Origins], tuple[str, _Origins]], order: list[int]) -> _Origins:
    both = pair[0][1] + pair[1][1]
    return [both[place] for place in order]
