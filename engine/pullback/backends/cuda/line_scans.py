"""Cumulative sums and products of one line as nodes that ask for no memory of PyTorch's pool, whose bits are the same each time.

A line that is alone PyTorch gives to CUB, whose blocks add what those before them have by then, in memory of the pool. Several
lines it scans each by one block of threads, into memory that is there. A line is made several:

    rows = (n // 256, 256) of x      s = cumsum rows        PyTorch's, into kept memory
    before = cumsum s[:, -1]         the totals of the rows, in the same way
    y = s[0], s[1:] + before[:-1], cumsum of the rest + before[-1]             moved by one nest for each part

A short one is a nest: each element is the sum of those up to its place.
"""

from collections.abc import Callable
from math import prod as product
from typing import Any

import numpy as np

from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.ir.graph import Atom, Literal, Node, Var
from pullback.rules.cumulative import cumprod, cumsum
from pullback.rules.elementwise import add, mul, where
from pullback.rules.indexing import index
from pullback.rules.joining import concatenate
from pullback.rules.logic import less_equal
from pullback.rules.reductions import prod, sum_
from pullback.rules.shapes import astype, reshape

#: Elements of a row, and half of those of which a line is no longer short.
ROW = 256

#: By scan, what its elements are combined by, and what changes none of them.
SCANS: dict[Primitive, tuple[Primitive, int]] = {cumsum: (add, 0), cumprod: (mul, 1)}


def is_one_line(node: Node) -> bool:
    """True if a scan is along all of its elements."""
    shape = node.outputs[0].type.shape
    return bool(product(shape) == shape[dict(node.params)["axis"]])


def write_scan(node: Node, made: Callable[..., Var], constant: Callable[[Any], Var]) -> None:
    """Make the nodes of a scan of one line."""
    (x,), (result,) = node.inputs, node.outputs
    if x.type.dtype != result.type.dtype:
        x = made(astype, (x,), node.source, dtype=result.type.dtype)
    _write(node, made, constant, x, dict(node.params)["axis"], result)


def _write(
    node: Node, made: Callable[..., Var], constant: Callable[[Any], Var], x: Atom, axis: int, output: Var | None
) -> Var:
    combine, unit = SCANS[node.primitive]
    shape, source, count = x.type.shape, node.source, x.type.size
    key, rank = (slice(None),) * axis, len(shape)

    def shaped(atom: Atom, shape: tuple[int, ...]) -> Var:
        return made(reshape, (atom,), source, shape=shape)

    def along(size: int) -> tuple[int, ...]:
        return (*[1] * axis, size, *[1] * (rank - axis - 1))

    if count < 2 * ROW:
        places = np.arange(count, dtype=np.int32)
        is_before = made(less_equal, (constant(places), constant(places.reshape(*shape, 1))), source)
        nothing = Literal(x.type.dtype.type(unit), ArrayType((), x.type.dtype))
        read = made(where, (is_before, shaped(x, (*[1] * rank, count)), nothing), source)
        if node.primitive is cumprod:
            return made(prod, (read,), source, output=output, axis=rank)
        return made(sum_, (read,), source, output=output, axes=(rank,), keepdims=False)
    rows, rest = divmod(count, ROW)
    whole = made(index, (x,), source, key=(*key, slice(0, rows * ROW))) if rest else x
    scanned = made(node.primitive, (shaped(whole, (rows, ROW)),), source, axis=1)
    totals = made(index, (scanned,), source, key=(slice(None), slice(ROW - 1, ROW)))
    before = _write(node, made, constant, totals, 0, None)
    first = made(index, (scanned,), source, key=(slice(0, 1),))
    others = made(index, (scanned,), source, key=(slice(1, rows),))
    moved = made(combine, (others, made(index, (before,), source, key=(slice(0, rows - 1),))), source)
    parts = [shaped(first, along(ROW)), shaped(moved, along((rows - 1) * ROW))]
    if rest:
        tail = _write(node, made, constant, made(index, (x,), source, key=(*key, slice(rows * ROW, count))), axis, None)
        last = made(index, (before,), source, key=(slice(rows - 1, rows),))
        parts.append(made(combine, (tail, shaped(last, along(1))), source))
    return made(concatenate, tuple(parts), source, output=output, axis=axis)
