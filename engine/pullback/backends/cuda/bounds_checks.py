"""Bounds checks of positions that a program on a device reads by: nests use them unchecked, and one check ends a call.

A position out of bounds has to be an `IndexError`, and must not be read by. A nest keeps each position inside of its axis, so
that it reads nothing that is not there; whether it had to is found beside it.

    y = gather x p           nest: reads x by p             on a device
    b = p < -n or p >= n;    nest: b, any                   for each array of positions that is on the device
      o = any b
    return y, o              o is looked at when everything has been queued

Positions that the host has are looked at there: those that the function makes for itself once, when the program is written, and
those of a call before it. Class numbers (`pb.nn.logitcrossentropy`) are positions too. If there was one out of bounds, the graph
is computed node by node, which ends with the error that the function would end with.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import torch

from pullback.backends.cuda.elementwise_forms import FORMS, has_form, read_by_windows, write_form
from pullback.backends.cuda.position_sums import SUMS, add_up, summing_of
from pullback.backends.interpreter import GuardFailure
from pullback.backends.llvm.builder.lanes import DTYPES
from pullback.backends.nests.array_selections import PICKS, picked_by, why_not_picked
from pullback.backends.nests.views import views_of
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Capture, Graph, Literal, Node, Var
from pullback.ir.strides import places
from pullback.rules.logic import greater_equal, less, logical_or
from pullback.rules.reductions import any_
from pullback.rules.softmax import checked_classes, class_numbers

_BY_POSITIONS = PICKS | SUMS | {class_numbers}
_WRITTEN_OUT = frozenset(FORMS)

Look: TypeAlias = Callable[[Any], object]
"""Raises for positions of the host of which one is out of bounds."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A graph whose positions are looked at, and how."""

    graph: Graph
    """The graph that is computed; if `at_the_end`, with one output more, the truth value that one of them is out of bounds."""
    at_the_end: bool = False
    by_nests: frozenset[Node] = frozenset()
    """The nodes that nests compute."""
    of_host: Mapping[Var, tuple[Look, ...]] = field(default_factory=dict)
    """The inputs that the host looks at before."""
    constants: Mapping[Var, Any] = field(default_factory=dict)
    """The arrays that are read besides what the graph is given."""

    @property
    def closed(self) -> Graph:
        """The graph with these arrays among its captures, as it is checked and printed."""
        captures = (Capture(var, value) for var, value in self.constants.items())
        return replace(self.graph, captures=(*self.graph.captures, *captures)) if self.constants else self.graph


def bounds_of(graph: Graph, there: Mapping[Var, bool], *, is_body: bool = False) -> Bounds:
    """Let nests read by positions where they can; in a body by those alone that need no look, of elementwise forms.

    Of what is `there`, on the device, that flagged False is put there by the host.
    """
    wanted = _WRITTEN_OUT if is_body else _BY_POSITIONS | _WRITTEN_OUT
    if not any(node.primitive in wanted for node in graph.nodes):
        return Bounds(graph)
    return _BoundsSearch(graph, there, is_body=is_body).bounds()


class _BoundsSearch:
    def __init__(self, graph: Graph, there: Mapping[Var, bool], *, is_body: bool) -> None:
        self.graph = graph
        self.there = there
        self.is_body = is_body
        self.views = views_of(graph, {})
        self.captured: dict[Atom, Any] = {
            one.var: one.value for one in graph.captures if isinstance(one.value, np.ndarray)
        }
        made = (var for node in graph.nodes for var in node.outputs)
        self.numbers = count(1 + max(var.index for var in (*graph.inputs, *(one.var for one in graph.captures), *made)))
        self.nodes: list[Node] = []
        self.by_nests: set[Node] = set()
        self.of_host: dict[Var, list[Look]] = {}
        self.constants: dict[Var, Any] = {}
        self.flags: list[Var] = []
        self.inside: dict[Atom, list[tuple[int, int]]] = {}
        """By value, ranges that all of it is known to lie in, once it has been looked at."""
        self.same: dict[Atom, Atom] = {}
        """By class numbers, the labels that they are."""

    def bounds(self) -> Bounds:
        graph = self.graph
        kept = {*graph.outputs, *(guard.atom for guard in graph.guards)}
        for given in graph.nodes:
            node = given.reading(tuple(self.same.get(atom, atom) for atom in given.inputs))
            if self.is_written_out(node):
                continue
            if self.is_body:
                self.nodes.append(node)
                continue
            if node.primitive is class_numbers and not kept.intersection(node.outputs) and self.are_classes(node):
                self.same[node.outputs[0]] = node.inputs[0]
                continue
            if node.primitive in PICKS and self.is_read(node):
                self.by_nests.add(node)
            elif node.primitive in SUMS and self.is_added_up(node):
                continue
            self.nodes.append(node)
        outputs = graph.outputs
        if self.flags:
            flag, *others = self.flags
            for other in others:
                flag = self.made(logical_or, (flag, other), "")
            outputs = (*outputs, flag)
        changed = Graph(graph.inputs, graph.captures, tuple(self.nodes), outputs, graph.guards)
        looks = {var: tuple(looks) for var, looks in self.of_host.items()}
        return Bounds(changed, bool(self.flags), frozenset(self.by_nests), looks, self.constants)

    def is_written_out(self, node: Node) -> bool:
        """True if a node has become nodes of nests, of which those that read by positions need no look."""
        atoms = (*node.inputs, *node.outputs)
        if not has_form(node) or not all(atom.type.dtype in DTYPES and bool(atom.type.size) for atom in atoms):
            return False
        read = read_by_windows(node)
        is_of_number = not read and isinstance(self.views.access(node.inputs[0]).root, Literal)
        if not (is_of_number or self.there.keys() >= {*read, *node.outputs}):
            return False
        before = len(self.nodes)
        write_form(node, self.made, self.constant)
        self.by_nests.update(one for one in self.nodes[before:] if one.primitive in PICKS)
        return True

    def are_classes(self, node: Node) -> bool:
        """True if labels are looked at, so that nothing else is left to do."""
        (labels,), classes = node.inputs, dict(node.params)["classes"]
        if not self.may_be_looked_at(labels, classes):
            return False
        return self.look(labels, 0, classes, partial(checked_classes, classes=classes), node.source)

    def is_read(self, node: Node) -> bool:
        """True if a nest reads by the positions of a node, which are looked at."""
        array, *positions = node.inputs
        if why_not_picked(node) is not None or array not in self.there or not self.is_computed(node, array):
            return False
        picks = picked_by(node, array.type.shape, [places(one.type.shape) for one in positions]).picks
        return self.look_along([(positions[pick.operand], pick.axis, pick.size) for pick in picks], node.source)

    def is_added_up(self, node: Node) -> bool:
        """True if a sum by positions, which are looked at, has become nodes of nests."""
        summing = summing_of(node)
        if summing is None or not self.is_computed(node, summing.added):
            return False
        along = [(positions.atom, positions.axis, positions.size) for positions in summing.positions]
        if not self.look_along(along, node.source):
            return False
        add_up(node, summing, self.made, self.constant)
        return True

    def is_computed(self, node: Node, moved: Atom) -> bool:
        """True if nests compute with the elements that a node moves, wherever those lie, which `is_read` checks."""
        results_are_there = self.there.keys() >= {*node.outputs}
        return results_are_there and all(
            atom.type.dtype in DTYPES and bool(atom.type.size) for atom in (moved, *node.outputs)
        )

    def look_along(self, along: Sequence[tuple[Atom, int, int]], source: str) -> bool:
        """Look at positions along axes, of which the number and the size are given; False where that is left to the rule."""
        return all(self.may_be_looked_at(positions, size) for positions, _, size in along) and all(
            self.look(positions, -size, size, partial(_look, axis=axis, size=size), source)
            for positions, axis, size in along
        )

    def may_be_looked_at(self, positions: Atom, size: int) -> bool:
        """True for whole numbers of the device that a nest computes with."""
        dtype = positions.type.dtype
        fits = dtype.itemsize == 8 or size < 2**31
        return positions in self.there and dtype.kind == "i" and dtype in DTYPES and fits and bool(positions.type.size)

    def look(self, positions: Atom, low: int, high: int, of_host: Look, source: str) -> bool:
        """Look whether positions are from `low` to below `high`; False where it is known that they are not."""
        root = self.root_of(positions)
        if any(low <= known_low and known_high <= high for known_low, known_high in self.inside.get(root, ())):
            return True
        if root in self.captured:
            values = self.captured[root]
            return bool(low <= values.min() and values.max() < high)
        if isinstance(positions, Var) and positions in self.graph.inputs and not self.there[positions]:
            self.of_host.setdefault(positions, []).append(of_host)
        else:
            self.flag(positions, low, high, source)
        if root is positions:
            self.inside.setdefault(root, []).append((low, high))
        return True

    def root_of(self, atom: Atom) -> Atom:
        """The value that something is a view of."""
        root = self.views.access(atom).root
        return self.root_of(self.same[root]) if root in self.same else root

    def flag(self, positions: Atom, low: int, high: int, source: str) -> None:
        """The truth value that one of some positions is out of bounds."""
        below = self.made(less, (positions, _number(low)), source)
        above = self.made(greater_equal, (positions, _number(high)), source)
        outside = self.made(logical_or, (below, above), source)
        axes = tuple(range(len(outside.type.shape)))
        self.flags.append(self.made(any_, (outside,), source, axes=axes, keepdims=False) if axes else outside)

    def made(
        self, primitive: Primitive, inputs: tuple[Atom, ...], source: str, *, output: Var | None = None, **params: Any
    ) -> Var:
        """The result of a node more, which is `output` if that is given."""
        (type_,) = primitive.infer(*(atom.type for atom in inputs), **params)
        var = output or Var(next(self.numbers), type_)
        self.nodes.append(Node(primitive, inputs, tuple(params.items()), (var,), source))
        return var

    def constant(self, value: Any) -> Var:
        """The name of an array that is known."""
        var = Var(next(self.numbers), ArrayType(value.shape, value.dtype))
        self.constants[var] = value
        return var


def _number(value: int) -> Literal:
    return Literal(value, ArrayType((), np.dtype(np.int64), weak=True))


def _look(positions: Any, axis: int, size: int) -> None:
    """Raise what NumPy raises for a position out of bounds."""
    for bad in (positions.min(), positions.max()):
        if not -size <= bad < size:
            raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {size}")


class DeferredBoundsCheck:
    """A program whose last output says that a position was out of bounds, which is looked at when all work is queued."""

    def __init__(self, program: Callable[..., Any], graph: Graph, *, keeps: bool) -> None:
        self._program = program
        self._graph = graph
        self._keeps = keeps

    def __call__(self, *given: Any) -> Any:
        """One run: the outputs, or what a guard saw that it should not."""
        made = self._program(*given)
        if type(made) is GuardFailure:
            return made
        *outputs, is_outside = made
        if _is_set(is_outside.tensor):
            return _computed(self._graph, given[self._keeps :])
        return tuple(outputs)


def _is_set(flag: torch.Tensor) -> bool:
    return bool(flag)


def _computed(graph: Graph, given: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs of a graph, node by node; rules look at positions before they read by them, and raise."""
    variables = (*graph.inputs, *(capture.var for capture in graph.captures))
    values = dict(zip(variables, given, strict=True))

    def value_of(atom: Atom) -> Any:
        return values[atom] if isinstance(atom, Var) else atom.value

    for node in graph.nodes:
        made = node.primitive(*map(value_of, node.inputs), **dict(node.params))
        values.update(zip(node.outputs, made if node.primitive.results > 1 else (made,), strict=True))
    return tuple(map(value_of, graph.outputs))
