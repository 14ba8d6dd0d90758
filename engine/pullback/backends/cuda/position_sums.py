"""Sums by positions as nests: a sum over all places that an element could go to, so that its order is known.

    x = scatter_add v p {shape=(n, c)}      x[i, k] = sum over j of where(p[j] == i, v[j, k], 0)

The threads of a nest share nothing but what they gather in one order, so the same bits come in every run, without atomics. The
cost: every element of v is read once for each place along the axis that it is added up in, n times as often as it has to be, and
mostly from the caches. Sums of more points than `MOST_POINTS` are left to PyTorch, which sorts the positions.

The space has the axes of the positions first, which are reduced, and then those of what is selected: along an axis with
positions all places, along another those of its slice. What a slice or a number leaves out is zero.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Literal, Node, Var
from pullback.rules.elementwise import add, where
from pullback.rules.gathering import ARRAY, are_adjacent, places_of, put_along, scatter_add
from pullback.rules.indexing import index, scatter
from pullback.rules.logic import equal, logical_and, logical_or
from pullback.rules.reductions import sum_
from pullback.rules.shapes import broadcast_to, transpose
from pullback.rules.storing import add_at

#: Rules that add up by positions.
SUMS: frozenset[Primitive] = frozenset({scatter_add, put_along, add_at})

#: Points of a nest, at each of which one position is compared with one place. A count that nobody has measured yet.
MOST_POINTS = 1 << 23

_ALL = slice(None)

View: TypeAlias = tuple[tuple[int, ...], tuple[Any, ...]]
"""The layout of an operand along a space: its axes in another order, and then a key of `index`."""

MakeNode: TypeAlias = Callable[..., Var]
"""`made(primitive, operands, source, …)` makes a node and gives its result."""


@dataclass(frozen=True, slots=True)
class Positions:
    """An array of positions: how it lies, the axis of the array that they are along, that of the space, and how many places there are."""

    atom: Atom
    view: View
    axis: int
    place: int
    size: int


@dataclass(frozen=True, slots=True)
class PositionSum:
    """A sum by positions over a space, of which the first `count` axes are those of the positions."""

    added: Atom
    view: View
    positions: tuple[Positions, ...]
    space: Shape
    count: int
    key: tuple[Any, ...] | None
    """The basic key of what is selected of the result; None for all of it."""


def summing_of(node: Node) -> PositionSum | None:
    """A sum by positions over a space; None for what is none, or of too many points."""
    first = 1 if node.primitive is add_at else 0
    added, positions, result = node.inputs[first], node.inputs[first + 1 :], node.outputs[0].type
    if not positions or any(atom.type.dtype != result.dtype for atom in node.inputs[: first + 1]):
        return None
    params = dict(node.params)
    if "axis" in params:
        summing = _along(added, positions[0], result.shape, params["axis"])
    else:
        summing = _by_key(added, positions, result.shape, params["key"])
    if result.dtype.kind != "f" or summing is None or not 0 < math.prod(summing.space) <= MOST_POINTS:
        return None
    return summing


def _along(added: Atom, positions: Atom, shape: Shape, axis: int) -> PositionSum | None:
    """A sum by positions along an axis, in step along the others."""
    given = positions.type.shape
    if added.type.shape != given or (*given[:axis], *given[axis + 1 :]) != (*shape[:axis], *shape[axis + 1 :]):
        return None
    others = [other for other in range(len(shape)) if other != axis]
    view: View = (axis, *others), (_ALL, *[_ALL] * axis, None, *[_ALL] * (len(shape) - axis - 1))
    own = Positions(positions, view, axis, axis + 1, shape[axis])
    return PositionSum(added, view, (own,), (given[axis], *shape), 1, None)


def _by_key(added: Atom, positions: Sequence[Atom], shape: Shape, key: Sequence[Any]) -> PositionSum | None:
    """A sum by a key of arrays, numbers and slices."""
    parts = [*key, *[_ALL] * (len(shape) - len(key))]
    if not all(part == ARRAY or isinstance(part, slice) or type(part) is int for part in parts):
        return None
    together = np.broadcast_shapes(*(atom.type.shape for atom in positions))
    rank, before = len(together), 0
    if are_adjacent(places_of(key)):  # else what the positions select has its axes in front
        before = sum(isinstance(part, slice) for part in parts[: places_of(key)[0]])
    sizes = {
        axis: shape[axis] if part == ARRAY else len(range(*part.indices(shape[axis])))
        for axis, part in enumerate(parts)
        if type(part) is not int
    }
    sliced = [size for axis, size in sizes.items() if parts[axis] != ARRAY]
    if added.type.shape != (*sliced[:before], *together, *sliced[before:]):
        return None
    axes = (*range(before, before + rank), *range(before), *range(before + rank, rank + len(sliced)))
    view: View = axes, (*[_ALL] * rank, *(None if parts[axis] == ARRAY else _ALL for axis in sizes))
    arrays = [(axis, place) for place, axis in enumerate(sizes, rank) if parts[axis] == ARRAY]
    found = []
    for atom, (axis, place) in zip(positions, arrays, strict=True):
        own = len(atom.type.shape)
        key_of = (*[_ALL] * own, *[None] * len(sizes))
        found.append(Positions(atom, (tuple(range(own)), key_of), axis, place, shape[axis]))
    basic = tuple(_ALL if part == ARRAY else part for part in parts)
    is_all = all(part == _ALL for part in basic)
    return PositionSum(added, view, tuple(found), (*together, *sizes.values()), rank, None if is_all else basic)


def add_up(node: Node, summing: PositionSum, made: MakeNode, constant: Callable[[Any], Var]) -> None:
    """The nodes of a sum; `constant` gives the name of an array that is known."""
    space, source, result = summing.space, node.source, node.outputs[0]

    def spread(atom: Atom, view: View) -> Var:
        axes, key = view
        if axes != tuple(range(len(axes))):
            atom = made(transpose, (atom,), source, axes=axes)
        return made(broadcast_to, (made(index, (atom,), source, key=key),), source, shape=space)

    is_here: Var | None = None
    for positions in summing.positions:
        own, behind = spread(positions.atom, positions.view), [None] * (len(space) - positions.place - 1)
        from_start, from_end = (
            made(equal, (own, spread(constant(places), ((0,), (_ALL, *behind)))), source)
            for places in (np.arange(positions.size), np.arange(-positions.size, 0))
        )
        along = made(logical_or, (from_start, from_end), source)
        is_here = along if is_here is None else made(logical_and, (is_here, along), source)
    assert is_here is not None  # noqa: S101 - there is an array of positions at least
    zero = Literal(result.type.dtype.type(0), ArrayType((), result.type.dtype))
    is_last = summing.key is None and node.primitive is not add_at
    terms = is_here, spread(summing.added, summing.view), zero
    if summing.count:
        axes = tuple(range(summing.count))
        each = made(where, terms, source)
        total = made(sum_, (each,), source, output=result if is_last else None, axes=axes, keepdims=False)
    else:
        total = made(where, terms, source, output=result if is_last else None)
    if node.primitive is add_at and summing.key is None:
        made(add, (node.inputs[0], total), source, output=result)
    elif node.primitive is add_at:
        made(add_at, (node.inputs[0], total), source, output=result, key=summing.key)
    elif summing.key is not None:
        shape, dtype = result.type.shape, result.type.dtype
        made(scatter, (total,), source, output=result, key=summing.key, shape=shape, dtype=dtype)
