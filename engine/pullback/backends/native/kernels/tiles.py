"""Tiles: sums of products of some rows and columns, held in registers while the contracted axis runs by.

What a lane stands for is the caller's choice, made by strides alone: columns (numbers of A are spread over all lanes),
places of a batch, or steps of the contracted axis (the lanes are summed in the end).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pullback.backends.native.writing.lanes import Lanes, memory_type

#: Sums of a tile by row and column, each a value in lanes.
Sums: TypeAlias = list[list[str]]


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor at the corner of a tile: how far apart, in elements, its entries, steps and lanes are.

    Entries are the tile's rows for the left factor and its columns for the right one.
    """

    pointer: str
    entry: int
    step: int
    lane: int
    dtype: np.dtype[Any]
    is_padded: bool = False
    """Whether lanes that do not count may be read."""

    def load(self, lanes: Lanes, pointer: str, entry: int, step: int, active: int | None) -> str:
        """The lanes of an entry, `step` steps behind a pointer, as numbers of the dtype that is computed in."""
        stored = lanes.as_dtype(self.dtype)
        offset = entry * self.entry + step * self.step
        if self.lane == 0:
            one = stored.narrowed()
            return lanes.splat(one.convert(one.load(pointer, offset), lanes.narrowed()))
        return stored.convert(
            stored.load(pointer, offset, stride=self.lane, active=None if self.is_padded else active), lanes
        )


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of `rows` times as many columns as there are `actives`: how many lanes of each column count, None for all.

    The contracted axis has `steps` steps, and one more of which only the first `last` lanes count, where that is not 0.
    `chains` sums of each entry are kept apart, so that one addition need not wait for the one before.
    """

    rows: int
    actives: tuple[int | None, ...]
    steps: int
    last: int = 0
    chains: int = 1


def sum_products(lanes: Lanes, tile: Tile, a: Factor, b: Factor) -> Sums:
    """The sums over the contracted axis."""
    function = lanes.function
    entries = [(row, column) for row in range(tile.rows) for column in range(len(tile.actives))]
    slots = [
        {entry: function.slot(lanes.type, lanes.constant(0)) for entry in entries}
        for _ in range(min(tile.chains, max(1, tile.steps)))
    ]

    def step(pointers: tuple[str, str], number: int, active: int | None) -> None:
        sums = slots[number % len(slots)]
        right = [
            b.load(lanes, pointers[1], column, number, active or lanes_active)
            for column, lanes_active in enumerate(tile.actives)
        ]
        for row in range(tile.rows):
            left = a.load(lanes, pointers[0], row, number, active or tile.actives[0])
            for column in range(len(tile.actives)):
                slot = sums[row, column]
                before = function.load(lanes.type, slot)
                function.store(lanes.type, multiply_add(lanes, left, right[column], before), slot)

    whole = tile.steps // len(slots) * len(slots)
    if whole:
        with function.loop(0, whole, len(slots)) as start:
            here = (
                function.element(a.pointer, function.mul(start, a.step), stored_type(a)),
                function.element(b.pointer, function.mul(start, b.step), stored_type(b)),
            )
            for number in range(len(slots)):
                step(here, number, None)
    for number in range(whole, tile.steps):
        step((a.pointer, b.pointer), number, None)
    if tile.last:
        step((a.pointer, b.pointer), tile.steps, tile.last)

    def total(entry: tuple[int, int]) -> str:
        parts = [function.load(lanes.type, sums[entry]) for sums in slots]
        return add_pairwise(lanes, parts)

    return [[total((row, column)) for column in range(len(tile.actives))] for row in range(tile.rows)]


def stored_type(factor: Factor) -> str:
    """LLVM's type of one element of a factor."""
    return memory_type(factor.dtype)


def multiply_add(lanes: Lanes, a: str, b: str, c: str) -> str:
    """The sum a * b + c: one instruction where the machine has it, which all with vectors wider than 128 bits do."""
    if lanes.is_float and lanes.function.module.vector_bits > 128:
        return lanes.fma(a, b, c)
    return lanes.add(lanes.mul(a, b), c)


def add_pairwise(lanes: Lanes, parts: Sequence[str]) -> str:
    """Sum of values, neighbours first."""
    while len(parts) > 1:
        parts = [lanes.add(*parts[at : at + 2]) if at + 1 < len(parts) else parts[at] for at in range(0, len(parts), 2)]
    return parts[0]
