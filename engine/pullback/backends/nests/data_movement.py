"""Joins, and stores by basic keys, as nests that do nothing but move elements.

    j = concatenate x y {axis=0}        j[:3] = x;  j[3:] = y
    b = set_at a v {key=(0, 1:3)}       a[0, 1:3] = v                                        in the memory of a, else
                                        b[0, 1:3] = v;  b[1:] = a[1:];  b[0, :1] = a[0, :1];  …
    b = scatter v {key=2}               b[2] = v;  b[:2] = 0;  b[3:] = 0

No two of them write the same element, and none reads what another one writes: they can run in any order, or at once.
"""

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from pullback.backends.llvm.builder.lanes import DTYPES
from pullback.backends.nests.joins_in_place import parts_of
from pullback.backends.nests.nest import Nest, NestWrite, Step
from pullback.backends.nests.nest_building import Source
from pullback.backends.nests.views import Access, Views, part_of
from pullback.core.types import ArrayType, Shape
from pullback.ir.graph import Literal, Node
from pullback.passes.keys import Place, as_range, places_of
from pullback.rules.activations import identity
from pullback.rules.elementwise import add
from pullback.rules.indexing import scatter
from pullback.rules.inplace import copy
from pullback.rules.joining import concatenate
from pullback.rules.storing import STORES, add_at

Move: TypeAlias = tuple[Nest, list[Access]]
"""A nest, and by pointer what it points to."""

#: Boxes that are left of an array around what a key selects, at most: every further step of a slice is one more.
MOST_BOXES = 16


def is_moved(node: Node, *, is_over: bool) -> bool:
    """True for a join or a store that is such nests; `is_over`: a store into the memory of its array."""
    result = node.outputs[0].type
    if not (result.size and all(_converts(atom.type, result.dtype) for atom in node.inputs)):
        return False
    if node.primitive is concatenate:
        return True
    if node.primitive is not scatter and (node.primitive not in STORES or len(node.inputs) > 2):
        return False
    taken = _taken(node)
    if taken is None or (node.primitive is add_at and result.dtype.kind == "b"):
        return False
    return is_over or len(list(_around(taken, result.shape))) <= MOST_BOXES


def moves_of(node: Node, views: Views, *, is_over: bool) -> list[Move]:
    """The nests of a join, a copy or a store; what is in its place already is not moved."""
    result = node.outputs[0]
    if node.primitive in (concatenate, copy):
        return [
            _move(views.access(atom), atom.type.shape, there, atom.type.shape)
            for atom, there in parts_of(node, views)
            if atom.type.size and not _is_there(views.access(atom), there, atom.type.shape)
        ]
    *arrays, stored = node.inputs
    shape, before = result.type.shape, views.access(arrays[0]) if arrays else None
    there = before if before is not None and is_over else views.access(result)
    key, moves = dict(node.params)["key"], list[Move]()
    part, space = part_of(there, shape, key)
    value, adds = views.access(stored), node.primitive is add_at
    if math.prod(space) and (adds or stored.type.shape != space or not _is_there(value, part, space)):
        added = part_of(before, shape, key)[0] if before is not None and adds else None
        moves.append(_move(value, stored.type.shape, part, space, added))
    if is_over:
        return moves
    dtype, taken = result.type.dtype, _taken(node)
    assert taken is not None  # noqa: S101 - `is_moved` says so
    zero = Access(Literal(dtype.type(0), ArrayType((), dtype)), 0, ())
    for box in _around(taken, shape):
        part, space = part_of(there, shape, box)
        read, own = (zero, ()) if before is None else part_of(before, shape, box)
        moves.append(_move(read, own, part, space))
    return moves


def _is_there(access: Access, there: Access, shape: Shape) -> bool:
    strides = zip(shape, access.strides, there.strides, strict=True)
    same = all(size == 1 or own == other for size, own, other in strides)
    return access.root is there.root and access.offset == there.offset and same


def _converts(given: ArrayType, dtype: np.dtype[Any]) -> bool:
    """True if a nest converts to a dtype as NumPy does: a Python integer that may not fit is an error there."""
    if given.dtype not in DTYPES or dtype not in DTYPES or not np.can_cast(given.dtype, dtype, "same_kind"):
        return False
    return not given.weak or given.dtype.kind != "i" or dtype.kind != "i" or dtype.itemsize >= given.dtype.itemsize


def _taken(node: Node) -> tuple[Place, ...] | None:
    """The places along each axis that the key of a store selects."""
    key, shape = dict(node.params)["key"], node.outputs[0].type.shape
    parts = [part for part in (key if isinstance(key, tuple) else (key,)) if part is not None]
    if Ellipsis in parts:
        place = parts.index(Ellipsis)
        parts[place : place + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    return places_of(tuple(parts), shape)


def _around(taken: tuple[Place, ...], shape: Shape) -> Iterator[tuple[slice, ...]]:
    """Keys of boxes that together are all elements but those at some places."""
    inside: list[slice] = []
    for place, size in zip(taken, shape, strict=True):
        own = sorted(as_range(place)[:: max(1, len(as_range(place)) - 1)])
        if not own:
            yield (*inside, slice(0, size))
            return
        first, last, step = own[0], own[-1], abs(as_range(place).step)
        left = [(0, first, 1), (last + 1, size, 1), *((first + k, last, step) for k in range(1, step))]
        yield from ((*inside, slice(*box)) for box in left if box[0] < box[1])
        inside.append(slice(first, last + 1, step))


def _move(read: Access, shape: Shape, there: Access, space: Shape, added: Access | None = None) -> Move:
    """Store what is read, which is of this shape, at all places of a space; or its sum with what is `added`."""
    source, dtype = Source(), there.dtype
    value = source.read(read, shape, space)
    before = None if added is None else source.read(added, space, space)
    last = len(source.reads)
    steps = [Step(identity, (value,), (read.dtype,), dtype)]
    if before is not None:
        steps.append(Step(add, (before, last), (dtype, dtype), dtype))
        last += 1
    write = NestWrite(last, len(source.operands), there.strides, dtype)
    return Nest(space, tuple(source.reads), tuple(steps), (write,), ()), [*source.operands, there]
