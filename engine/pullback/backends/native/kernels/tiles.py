"""Tiles: sums of products of some rows and columns, held in registers while the contracted axis runs by.

What a lane stands for is the caller's choice, made by strides alone: columns (numbers of A are spread over all lanes),
places of a batch, or steps of the contracted axis (the lanes are summed in the end).
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.dataclass import dataclass

#: Sums of a tile by row and column, each a value in the lanes of its column.
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
    """True if lanes that do not count may be read."""

    @property
    def memory_type(self) -> str:
        """LLVM's type of one number."""
        return memory_type(self.dtype)

    def load(self, lanes: Lanes, pointer: str, entry: int, step: int, active: int | None) -> str:
        """The lanes of an entry, `step` steps behind a pointer, as numbers of the dtype that is computed in."""
        stored = lanes.as_dtype(self.dtype)
        offset = entry * self.entry + step * self.step
        if self.lane == 0:
            one = stored.narrowed()
            return lanes.splat(one.convert(one.load(pointer, offset), lanes.narrowed()))
        active = None if self.is_padded else active
        return stored.convert(stored.load(pointer, offset, stride=self.lane, active=active), lanes)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a tile: the lanes it has, and how many of them count, None for all."""

    lanes: Lanes
    active: int | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of `rows` times some columns.

    The contracted axis has `steps` steps, and one more of which only the first `last` lanes count, where that is not 0.
    `chains` sums of each entry are kept apart, so that one addition need not wait for the one before.
    """

    rows: int
    columns: tuple[Column, ...]
    steps: int
    last: int = 0
    chains: int = 1


def sum_products(tile: Tile, a: Factor, b: Factor) -> Sums:
    """The sums over the contracted axis."""
    function = tile.columns[0].lanes.function
    chains = [
        [
            [function.slot(column.lanes.type, column.lanes.constant(0)) for column in tile.columns]
            for _ in range(tile.rows)
        ]
        for _ in range(min(tile.chains, max(1, tile.steps)))
    ]

    def step(pointers: tuple[str, str], number: int, active: int | None) -> None:
        right = [
            b.load(column.lanes, pointers[1], entry, number, active or column.active)
            for entry, column in enumerate(tile.columns)
        ]
        for row, slots in enumerate(chains[number % len(chains)]):
            left: dict[int, str] = {}
            for column, slot, factor in zip(tile.columns, slots, right, strict=True):
                lanes = column.lanes
                if lanes.width not in left:
                    left[lanes.width] = a.load(lanes, pointers[0], row, number, active or column.active)
                before = function.load(lanes.type, slot)
                function.store(lanes.type, multiply_add(lanes, left[lanes.width], factor, before), slot)

    whole = tile.steps // len(chains) * len(chains)
    if whole:
        with function.loop(0, whole, len(chains)) as start:
            here = (
                function.element(a.pointer, function.mul(start, a.step), a.memory_type),
                function.element(b.pointer, function.mul(start, b.step), b.memory_type),
            )
            for number in range(len(chains)):
                step(here, number, None)
    for number in range(whole, tile.steps):
        step((a.pointer, b.pointer), number, None)
    if tile.last:
        step((a.pointer, b.pointer), tile.steps, tile.last)
    return [
        [
            add_pairwise(column.lanes, [function.load(column.lanes.type, chain[row][entry]) for chain in chains])
            for entry, column in enumerate(tile.columns)
        ]
        for row in range(tile.rows)
    ]


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
