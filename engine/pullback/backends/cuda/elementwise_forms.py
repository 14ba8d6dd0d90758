"""Pooling and triangles as nodes of nests: each element of a result is computed of the elements that belong to it, in one order.

    y = max_pool x            y[q] = maximum over the elements e of a window of x[q s + e]
    u = max_spread v x y      h[q] = v[q] / (sum over e of where(x[q s + e] == y[q], 1, 0))
                              u[i] = sum over the windows q around i of where(x[i] == y[q], h[q], 0)
    l = lower_triangle x {k}  l[i, j] = where(j <= i + k, x[i, j], 0)

Nothing is added up by threads that do not know of each other, so there are no atomics, and sums have the order of the rules. What
windows read is a view where no window reaches into padding. Else it is read by positions, which are constants, inside of the array,
and what padding holds is chosen in its place: no padded copy is made.

The elements of a window are nodes one by one; those of a large one are axes more, behind the others, which a nest reduces:

    y = max(where(inside, gather x p, -inf), axes)          p[q, e] = q s + e

Scans of one line are nodes too (`line_scans.py`).
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import ceil, prod
from typing import Any, TypeAlias

import numpy as np

from pullback.backends.cuda.line_scans import SCANS, is_one_line, write_scan
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Literal, Node, Var
from pullback.rules.diagonals import lower, upper
from pullback.rules.elementwise import add, div, maximum, where
from pullback.rules.gathering import ARRAY, gather
from pullback.rules.indexing import index
from pullback.rules.inplace import copy
from pullback.rules.logic import equal, greater_equal, less_equal, logical_or, not_equal
from pullback.rules.pooling import max_pool, max_select, max_spread, mean_pool, mean_spread
from pullback.rules.reductions import max_, sum_
from pullback.rules.shapes import broadcast_to, reshape
from pullback.rules.sliding import Pads, SlidingWindow

#: Elements of a window that are written out, at most: those of larger windows are axes.
MOST_ELEMENTS = 64

_ALL = slice(None)

MakeNode: TypeAlias = Callable[..., Var]
"""`made(primitive, operands, source, …)` makes a node and gives its result."""


def has_form(node: Node) -> bool:
    """True if `write_form` has nodes for a node; all of its values have elements that nests compute with."""
    if node.primitive in SCANS:
        return is_one_line(node)
    return node.primitive in FORMS


def read_by_windows(node: Node) -> tuple[Atom, ...]:
    """The operands of which elements are read at other places than those of the result; they have to be in memory."""
    if node.primitive in (lower, upper):
        return ()
    return node.inputs[1:] if node.primitive is max_spread else node.inputs


def write_form(node: Node, made: MakeNode, constant: Callable[[Any], Var]) -> None:
    """Make the nodes of a node; `constant` gives the name of an array that is known."""
    FORMS[node.primitive](node, made, constant)


# --- triangles ----------------------------------------------------------------------------------------------------------
def _triangle(node: Node, made: MakeNode, constant: Callable[[Any], Var]) -> None:
    (x,), result = node.inputs, node.outputs[0]
    *_, rows, columns = x.type.shape
    on_diagonal = np.clip(np.arange(rows)[:, None] + dict(node.params)["k"], -1, columns)
    own = made(broadcast_to, (constant(_narrow(on_diagonal, columns)),), node.source, shape=x.type.shape)
    compare = less_equal if node.primitive is lower else greater_equal
    is_kept = made(compare, (constant(_narrow(np.arange(columns), columns)), own), node.source)
    made(where, (is_kept, x, _number(0, result.type.dtype)), node.source, output=result)


# --- pooling ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Line:
    """The places that the elements of a result read along an axis; those that are not inside are padding.

    Of a large window they are those of all of its elements, along a second axis.
    """

    positions: Any
    is_inside: Any

    @property
    def part(self) -> slice | None:
        """The same as a slice, if nothing is read of padding and all steps are one and the same."""
        if self.positions.ndim > 1:
            return None
        first, count = int(self.positions[0]), len(self.positions)
        step = int(self.positions[1]) - first if count > 1 else 1
        is_slice = step > 0 and np.array_equal(self.positions, first + step * np.arange(count))
        return slice(first, first + (count - 1) * step + 1, step) if is_slice and self.is_inside.all() else None


class _Pooling:
    """The nodes of a node of pooling."""

    def __init__(self, node: Node, size: Shape, made: MakeNode, constant: Callable[[Any], Var]) -> None:
        params = dict(node.params)
        window, stride, pad = params["window"], params["stride"], params["pad"]
        self._node = node
        self._made = made
        self._constant = constant
        self._known: dict[tuple[int, tuple[int, ...], bytes], Var] = {}
        self.dtype = node.outputs[0].type.dtype
        sliding = SlidingWindow(size, window, stride, pad, (1,) * len(window))
        self.count = prod(window)
        self.rank = 2 + len(window)
        self.elements = list(product(*_written_out(_elements(sliding, pad))))
        """For each element of a window the lines by which windows read it; one for all of a large one."""
        self.windows = list(product(*_written_out(_windows(sliding, pad))))
        """For each window around an element, the first ones first, the lines by which elements read what belongs to it."""

    def of(self, primitive: Primitive, *operands: Atom, output: Var | None = None) -> Var:
        """The result of an elementwise node."""
        return self._made(primitive, operands, self._node.source, output=output)

    def number(self, value: float) -> Literal:
        return _number(value, self.dtype)

    def read(self, x: Atom, lines: Sequence[_Line], fill: float) -> Var:
        """The elements of x that are read, and `fill` for padding."""
        parts, source = [line.part for line in lines], self._node.source
        if all(part is not None for part in parts):
            return self._made(index, (x,), source, key=(_ALL, _ALL, *parts))
        behind = range(len(lines) - 1, -1, -1)
        sizes = zip(x.type.shape[2:], lines, behind, strict=True)
        positions = [
            self._along(_narrow(np.clip(line.positions, 0, size - 1), size), axes) for size, line, axes in sizes
        ]
        found = self._made(gather, (x, *positions), source, key=(_ALL, _ALL, *[ARRAY] * len(lines)))
        for line, axes in zip(lines, behind, strict=True):
            if not line.is_inside.all():
                found = self.of(where, self._along(line.is_inside, axes), found, _number(fill, x.type.dtype))
        return found

    def _along(self, values: Any, behind: int) -> Var:
        """Constants along an axis with so many axes behind it, and of a large window along that behind them."""
        key = behind, values.shape, values.tobytes()
        if key not in self._known:
            places, *elements = values.shape
            before = self.rank - 3 - behind
            within = [*[1] * before, *elements, *[1] * behind] if elements else []
            self._known[key] = self._constant(values.reshape(places, *[1] * behind, *within))
        return self._known[key]

    def beside(self, x: Atom, lines: Sequence[_Line]) -> Atom:
        """An array as it is combined with what is read by these lines: once for all elements of a large window."""
        if lines[0].positions.ndim == 1:
            return x
        return self._made(reshape, (x,), self._node.source, shape=(*x.type.shape, *[1] * len(lines)))

    def is_maximum(self, met: Atom, y: Atom) -> Var:
        """Truth values: what is met is the maximum of the window, or NaN."""
        return self.of(logical_or, self.of(equal, met, y), self.of(not_equal, met, met))

    def maxima(self, x: Atom, y: Atom) -> list[Var]:
        """Truth values, for each element of a window: it is the maximum of it."""
        least = _least(x.type.dtype)
        return [self.is_maximum(self.read(x, lines, least), self.beside(y, lines)) for lines in self.elements]

    def shares(self, values: Atom, y: Atom, marks: Sequence[Var], output: Var | None = None) -> Var:
        """Values of windows over how many share their maximum: NaN where that is NaN, unless the value is zero."""
        one, zero = self.number(1), self.number(0)
        ties = self.total([self.of(where, mark, one, zero) for mark in marks])
        of_nan = self.of(where, self.of(equal, values, zero), one, self.number(np.nan))
        return self.of(div, values, self.of(where, self.of(not_equal, y, y), of_nan, ties), output=output)

    def total(self, terms: Sequence[Var], output: Var | None = None) -> Var:
        """The sum of terms one after the other, or in the order of a nest."""
        return self.reduced(add, terms, output)

    def reduced(self, primitive: Primitive, terms: Sequence[Var], output: Var | None = None) -> Var:
        first, *others = terms
        if len(first.type.shape) > self.rank:
            axes = tuple(range(self.rank, len(first.type.shape)))
            reduction = max_ if primitive is maximum else sum_
            return self._made(reduction, (first,), self._node.source, output=output, axes=axes, keepdims=False)
        if not others:
            return first if output is None else self.of(copy, first, output=output)
        for other in others[:-1]:
            first = self.of(primitive, first, other)
        return self.of(primitive, first, others[-1], output=output)


def _written_out(lines: list[list[_Line]]) -> list[list[_Line]]:
    """The lines of each axis, or one for all where they are too many together."""
    if prod(map(len, lines)) <= MOST_ELEMENTS:
        return lines
    both = [([one.positions for one in own], [one.is_inside for one in own]) for own in lines]
    return [[_Line(np.stack(positions, 1), np.stack(is_inside, 1))] for positions, is_inside in both]


def _elements(sliding: SlidingWindow, pad: Pads) -> list[list[_Line]]:
    """The positions that windows read, for each axis and element of a window."""
    found = []
    for size, length, step, (low, _), count in zip(
        sliding.size, sliding.kernel, sliding.stride, pad, sliding.out, strict=True
    ):
        starts = step * np.arange(count) - low
        reads = [starts + element for element in range(length)]
        found.append([_Line(one, (one >= 0) & (one < size)) for one in reads])
    return found


def _windows(sliding: SlidingWindow, pad: Pads) -> list[list[_Line]]:
    """The windows that contain an element, for each axis, beginning with the one in which it is the first element."""
    found = []
    for size, length, step, (low, _), count in zip(
        sliding.size, sliding.kernel, sliding.stride, pad, sliding.out, strict=True
    ):
        places = low + np.arange(size)
        reads = [places // step - back for back in range(ceil(length / step))]
        found.append([_Line(one, (one >= 0) & (one < count) & (places - one * step < length)) for one in reads])
    return found


def _narrow(places: Any, size: int) -> Any:
    """Places along an axis of this size in as few bytes as nests compute with."""
    return places.astype(np.int32 if size < 2**31 - 1 else np.int64)


def _least(dtype: np.dtype[Any]) -> float:
    return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _number(value: float, dtype: np.dtype[Any]) -> Literal:
    return Literal(dtype.type(value), ArrayType((), dtype))


def _max_pool(node: Node, made: MakeNode, constant: Callable[[Any], Var]) -> None:
    (x,) = node.inputs
    pooling = _Pooling(node, x.type.shape[2:], made, constant)
    reads = [pooling.read(x, lines, _least(x.type.dtype)) for lines in pooling.elements]
    pooling.reduced(maximum, reads, node.outputs[0])


def _max_select(node: Node, made: MakeNode, constant: Callable[[Any], Var]) -> None:
    dx, x, y = node.inputs
    pooling = _Pooling(node, x.type.shape[2:], made, constant)
    marks = pooling.maxima(x, y)
    moves = [pooling.read(dx, lines, 0) for lines in pooling.elements]
    zero = pooling.number(0)
    chosen = [pooling.of(where, mark, move, zero) for mark, move in zip(marks, moves, strict=True)]
    pooling.shares(pooling.total(chosen), y, marks, node.outputs[0])


def _max_spread(node: Node, made: MakeNode, constant: Callable[[Any], Var]) -> None:
    v, x, y = node.inputs
    pooling = _Pooling(node, x.type.shape[2:], made, constant)
    marks = pooling.maxima(x, y)
    shares, zero = pooling.shares(v, y, marks), pooling.number(0)
    if pooling.windows[0][0].positions.ndim > 1:
        # Behind the shares: fused with them, it would be stored for each element of each window which of them are maxima.
        y = pooling.of(where, pooling.of(equal, shares, zero), y, y)
    terms = [
        pooling.of(
            where,
            pooling.is_maximum(pooling.beside(x, lines), pooling.read(y, lines, 0)),
            pooling.read(shares, lines, 0),
            zero,
        )
        for lines in pooling.windows
    ]
    pooling.total(terms, node.outputs[0])


def _mean_pool(node: Node, made: MakeNode, constant: Callable[[Any], Var]) -> None:
    (x,) = node.inputs
    pooling = _Pooling(node, x.type.shape[2:], made, constant)
    total = pooling.total([pooling.read(x, lines, 0) for lines in pooling.elements])
    pooling.of(div, total, pooling.number(pooling.count), output=node.outputs[0])


def _mean_spread(node: Node, made: MakeNode, constant: Callable[[Any], Var]) -> None:
    (v,) = node.inputs
    pooling = _Pooling(node, dict(node.params)["size"], made, constant)
    count = pooling.number(pooling.count)
    terms = [pooling.of(div, pooling.read(v, lines, 0), count) for lines in pooling.windows]
    pooling.total(terms, node.outputs[0])


FORMS: dict[Primitive, Callable[[Node, MakeNode, Callable[[Any], Var]], None]] = {
    lower: _triangle,
    upper: _triangle,
    max_pool: _max_pool,
    max_select: _max_select,
    max_spread: _max_spread,
    mean_pool: _mean_pool,
    mean_spread: _mean_spread,
    **dict.fromkeys(SCANS, write_scan),
}
