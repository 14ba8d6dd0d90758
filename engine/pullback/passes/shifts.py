"""Shifts that cancel: the extremum that is subtracted before an exponential is a constant to derivatives.

    m = max x                                      m = stop_gradient (max x)
    y = add m (log (sum (exp (sub x m))))    ->    y = add m (log (sum (exp (sub x m))))

Nothing depends on such a shift but rounding: whatever is added to m, y is the same. So the derivative through m, a nest that
finds the elements which are the extremum and shares among them what cancels to a rounding error, is exactly 0.

That is proved element by element. If an element of the shift grows by d, a value that depends on it

    grows by c d                     m itself (c = 1), x - m, sums and differences of such values, their products with numbers
    is multiplied by e^(c d)         exp of these, their sums along axes with one shift, products and quotients of such values

and `log` leads back. Where c becomes 0, the value does not depend on the shift any more. Every value that leads to what is
differentiated must be of these kinds, and no result may depend on the shift; anything else leaves the graph as it is. Truth
values and integers have no derivative in any case.

The shift must be the extremum of what it is subtracted from: where it is finite, one term of the sum is 1, so nothing is divided by
0 that would not be otherwise; where it is infinite or NaN, x - m is NaN there, and so is the value. So are the derivatives if what
cancels came through an exponential, whose derivative is its value; m + mean(x - m) is left as it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

import numpy as np

from pullback.core.primitive import Primitive
from pullback.core.types import Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.ir.strides import PlaceArray, offset, places, selected
from pullback.passes.loops.form import applied
from pullback.rules.constants import stop
from pullback.rules.contractions import matmul
from pullback.rules.elementwise import add, div, mul, neg, sub
from pullback.rules.exponential import exp, log
from pullback.rules.indexing import index
from pullback.rules.reductions import max_, min_, sum_
from pullback.rules.shapes import broadcast_to, reshape, transpose


def hold_shifts(graph: Graph, values_count: int) -> Graph:
    """Hold every such extremum, where the first `values_count` outputs are differentiated; inside loops and branches too."""
    if any(node.primitive.effect.writes for node in graph.nodes):
        return graph
    inner = tuple(node.with_bodies(lambda body: hold_shifts(body, len(body.outputs))) for node in graph.nodes)
    if inner != graph.nodes:
        graph = replace(graph, nodes=inner)
    if not any(node.primitive in (max_, min_) for node in graph.nodes):
        return graph
    leading = _leading_to(graph, graph.outputs[:values_count])
    held = {
        node: Var(-1, node.outputs[0].type)
        for position, node in enumerate(graph.nodes)
        if node.primitive in (max_, min_) and _cancels(node, graph.nodes[position + 1 :], leading, graph, values_count)
    }
    return _with_held(graph, held) if held else graph


def _leading_to(graph: Graph, outputs: Sequence[Atom]) -> set[Node]:
    needed, nodes = set(outputs), set()
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            nodes.add(node)
            needed.update(node.inputs)
    return nodes


def _with_held(graph: Graph, held: dict[Node, Var]) -> Graph:
    """The graph in which what reads an extremum reads it as a constant."""
    constants: dict[Atom, Atom] = {node.outputs[0]: constant for node, constant in held.items()}
    nodes = []
    for node in graph.nodes:
        inputs = tuple(constants.get(atom, atom) for atom in node.inputs)
        nodes.append(node if inputs == node.inputs else replace(node, inputs=inputs))
        if node in held:
            nodes.append(replace(applied(stop, node.outputs, node.source), outputs=(held[node],)))
    return replace(graph, nodes=tuple(nodes))


# --- the proof ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _ShiftEffect:
    """The effect of a shift by d on a value: it grows by `times` d, or by the factor e^(`times` d)."""

    times: float
    is_scaled: bool
    groups: PlaceArray
    """The element of the shift for each element, as a place."""
    is_of_exponential: bool = False
    """An exponential lies between it and the shift, which makes derivatives NaN where the shift is infinite or NaN."""

    def over(self, shape: Shape) -> "_ShiftEffect":
        """The same stretched over a shape."""
        return replace(self, groups=np.broadcast_to(self.groups, shape))

    def goes_with(self, other: "_ShiftEffect") -> bool:
        """True if the elements of both depend on the same elements of the shift; both have one shape."""
        mine, others = self.groups, other.groups
        steps = zip(mine.shape, mine.strides, others.strides, strict=True)
        return offset(mine, others) == 0 and all(size == 1 or own == its for size, own, its in steps)

    def is_one_along(self, axes: Sequence[int]) -> bool:
        """True if elements along axes depend on the same element of the shift."""
        return all(self.groups.shape[axis] == 1 or self.groups.strides[axis] == 0 for axis in axes)


class _UnprovedError(Exception):
    """A value depends on the shift in another way than those on this page."""


def _cancels(extremum: Node, rest: Sequence[Node], leading: set[Node], graph: Graph, values_count: int) -> bool:
    """True if what is differentiated does not depend on an extremum that is subtracted from what it is the extremum of."""
    shift, operand = extremum.outputs[0], extremum.inputs[0]
    if shift.type.dtype.kind != "f" or shift.type.size == 0:
        return False
    moved: dict[Atom, _ShiftEffect] = {shift: _ShiftEffect(1, is_scaled=False, groups=places(shift.type.shape))}
    views: set[Atom] = {operand}
    is_subtracted = False
    for node in rest:
        if node.primitive in _VIEWS and node.inputs[0] in views:
            views.update(node.outputs)
        if node not in leading or moved.keys().isdisjoint(node.inputs):
            continue
        if all(var.type.dtype.kind in "biu" for var in node.outputs):
            continue
        rule = _RULES.get(node.primitive)
        if rule is None or node.outputs[0].type.dtype != shift.type.dtype:
            return False
        try:
            effect = rule(node, [moved.get(atom) for atom in node.inputs])
        except _UnprovedError:
            return False
        if effect.times:
            moved[node.outputs[0]] = effect
        is_subtracted |= node.primitive is sub and not views.isdisjoint(node.inputs) and abs(effect.times) == 1
    return is_subtracted and moved.keys().isdisjoint(graph.outputs[:values_count])


def _sum(node: Node, parts: Sequence[_ShiftEffect | None]) -> _ShiftEffect:
    a, b = _over_result(node, parts)
    sign = -1 if node.primitive is sub else 1
    if a is not None and b is not None:
        if a.is_scaled != b.is_scaled or not a.goes_with(b) or (a.is_scaled and a.times != b.times):
            raise _UnprovedError
        times, is_of_exponential = a.times + sign * b.times, a.is_of_exponential or b.is_of_exponential
        if a.is_scaled:
            return a
        if times == 0 and not is_of_exponential:
            raise _UnprovedError
        return replace(a, times=times, is_of_exponential=is_of_exponential)
    if a is not None and not a.is_scaled:
        return a
    if b is not None and not b.is_scaled:
        return replace(b, times=sign * b.times)
    raise _UnprovedError


def _product(node: Node, parts: Sequence[_ShiftEffect | None]) -> _ShiftEffect:
    a, b = _over_result(node, parts)
    sign = -1 if node.primitive is div else 1
    if a is not None and b is not None:
        if not (a.is_scaled and b.is_scaled and a.goes_with(b)):
            raise _UnprovedError
        return replace(a, times=a.times + sign * b.times)
    if a is not None:
        return a if a.is_scaled else replace(a, times=node.primitive.evaluate(a.times, _number(node.inputs[1])))
    if b is not None and b.is_scaled:
        return replace(b, times=sign * b.times)
    if b is not None and sign == 1:
        return replace(b, times=b.times * _number(node.inputs[0]))
    raise _UnprovedError


def _number(atom: Atom) -> float:
    if not isinstance(atom, Literal) or not np.isfinite(atom.value) or atom.value == 0:
        raise _UnprovedError
    return float(atom.value)


def _over_result(node: Node, parts: Sequence[_ShiftEffect | None]) -> list[_ShiftEffect | None]:
    return [None if part is None else part.over(node.outputs[0].type.shape) for part in parts]


def _negated(_: Node, parts: Sequence[_ShiftEffect | None]) -> _ShiftEffect:
    part = _only(parts)
    return part if part.is_scaled else replace(part, times=-part.times)


def _exponential(_: Node, parts: Sequence[_ShiftEffect | None]) -> _ShiftEffect:
    part = _only(parts)
    if part.is_scaled:
        raise _UnprovedError
    return replace(part, is_scaled=True, is_of_exponential=True)


def _logarithm(_: Node, parts: Sequence[_ShiftEffect | None]) -> _ShiftEffect:
    part = _only(parts)
    if not part.is_scaled:
        raise _UnprovedError
    return replace(part, is_scaled=False)


def _total(node: Node, parts: Sequence[_ShiftEffect | None]) -> _ShiftEffect:
    part, axes = _only(parts), dict(node.params)["axes"]
    if not part.is_one_along(axes):
        raise _UnprovedError
    first_places = tuple(slice(0, 1) if axis in axes else slice(None) for axis in range(part.groups.ndim))
    groups = np.reshape(selected(part.groups, first_places), node.outputs[0].type.shape, copy=False)
    count = 1 if part.is_scaled else prod(part.groups.shape[axis] for axis in axes)
    return replace(part, times=part.times * count, groups=groups)


def _matrix_product(node: Node, parts: Sequence[_ShiftEffect | None]) -> _ShiftEffect:
    a, b = parts
    part, contracted = (a, -1) if b is None else (b, -2)
    is_one_shifted = part is not None and None in parts
    if (
        not is_one_shifted
        or part is None
        or not part.is_scaled
        or min(len(atom.type.shape) for atom in node.inputs) < 2
    ):
        raise _UnprovedError
    if not part.is_one_along([contracted]):
        raise _UnprovedError
    first = slice(0, 1)
    groups = selected(part.groups, (..., first) if contracted == -1 else (..., first, slice(None)))
    return replace(part, groups=groups).over(node.outputs[0].type.shape)


def _view(node: Node, parts: Sequence[_ShiftEffect | None]) -> _ShiftEffect:
    part, params = _only(parts), dict(node.params)
    if node.primitive is index:
        groups = selected(part.groups, params["key"])
    elif node.primitive is reshape:
        try:
            groups = np.reshape(part.groups, params["shape"], copy=False)
        except ValueError:
            raise _UnprovedError from None
    else:
        groups = node.primitive.evaluate(part.groups, **params)
    return replace(part, groups=groups)


def _only(parts: Sequence[_ShiftEffect | None]) -> _ShiftEffect:
    (part,) = parts
    assert part is not None  # noqa: S101 - a node is asked about if it reads something that depends on the shift
    return part


_VIEWS = (index, transpose, broadcast_to, reshape)

_Rule: TypeAlias = Callable[[Node, Sequence[_ShiftEffect | None]], _ShiftEffect]

_RULES: dict[Primitive, _Rule] = {
    **dict.fromkeys((add, sub), _sum),
    **dict.fromkeys((mul, div), _product),
    **dict.fromkeys(_VIEWS, _view),
    neg: _negated,
    exp: _exponential,
    log: _logarithm,
    sum_: _total,
    matmul: _matrix_product,
}
