"""Elements of an array that are read one by one, `x[0]`, `x[1]`, …, seen as what they are together: a slice of it.

a = index x {key=(0, 2)}; b = index x {key=(1, 2)}; …       stacked: index x {key=(0:9, 2)}
a = index x {key=0:3};    b = index x {key=1:4};    …       stacked: gather x [[0, 1, 2], [1, 2, 3], …]
s = concatenate (reshape a) (reshape b) …                   s = reshape (the stack), where a, b, … are such elements
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from pullback.core.types import type_of
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Capture, Graph, Node, Var
from pullback.passes.loops import repetition
from pullback.passes.loops.form import applied
from pullback.rules.gathering import ARRAY, gather
from pullback.rules.indexing import index
from pullback.rules.joining import concatenate
from pullback.rules.shapes import reshape, transpose

Part: TypeAlias = int | range
"""One place or several places along an axis, counted from its begin."""


def parts_of(node: Node) -> tuple[Part, ...] | None:
    """The positions that an index reads along the first axes, if its key is integers and slices alone."""
    if node.primitive is not index:
        return None
    key = dict(node.params)["key"]
    key = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(part, int | slice) for part in key):
        return None
    sizes = node.inputs[0].type.shape
    return tuple(
        range(*part.indices(size)) if isinstance(part, slice) else part % size
        for part, size in zip(key, sizes, strict=False)
    )


def elements_first(graph: Graph) -> Graph:
    """The graph with elements that are read one by one read as soon as their array is there, before the steps that use them."""
    read: dict[Any, set[Any]] = {}
    ways: dict[Node, list[Any]] = {}
    for node in graph.nodes:
        parts = parts_of(node) or ()
        for place, part in enumerate(parts):
            length = len(part) if isinstance(part, range) else None
            way = (node.inputs[0], place, length, parts[:place], parts[place + 1 :])
            read.setdefault(way, set()).add(part)
            ways.setdefault(node, []).append(way)
    moved = [node for node, own in ways.items() if any(len(read[way]) >= repetition.FEWEST_STEPS for way in own)]
    of_array: dict[Atom, list[Node]] = {}
    for node in moved:
        of_array.setdefault(node.inputs[0], []).append(node)
    stays = set(graph.nodes).difference(moved)

    def elements(values: Iterable[Atom]) -> Iterator[Node]:
        for value in values:
            for node in of_array.get(value, ()):
                yield node
                yield from elements(node.outputs)

    nodes = list(elements((*graph.inputs, *(capture.var for capture in graph.captures))))
    for node in graph.nodes:
        if node in stays:
            nodes += [node, *elements(node.outputs)]
    return replace(graph, nodes=tuple(nodes))


@dataclass
class NodeBuilder:
    """Nodes that are written one after the other, and the arrays that are made for them."""

    nodes: list[Node] = field(default_factory=list)
    captures: list[Capture] = field(default_factory=list)
    source: str = ""

    def apply(self, primitive: Any, inputs: Sequence[Atom], **params: Any) -> Var:
        """The result of a new node."""
        self.nodes.append(applied(primitive, inputs, self.source, **params))
        return self.nodes[-1].outputs[0]

    def capture(self, value: Any) -> Var:
        """A constant array."""
        self.captures.append(Capture(Var(-1, type_of(value)), value))
        return self.captures[-1].var

    def stack(self, nodes: Sequence[Node], most_copied: float = math.inf) -> Var | None:
        """The results of index nodes along a first axis, if they read one array at places along one axis of it.

        Where they are not evenly spaced that takes a copy: None, if elements have more bytes than are to be copied.
        """
        array, keys = nodes[0].inputs[0], [parts_of(node) for node in nodes]
        first = keys[0]
        if first is None or any(node.inputs[0] is not array for node in nodes):
            return None
        columns = list(zip(*(key or () for key in keys), strict=False))
        places = [place for place, column in enumerate(columns) if len(set(column)) > 1]
        if len(places) != 1 or len(columns) < max(len(key or ()) for key in keys) or None in keys:
            return None
        (place,) = places
        positions = np.array(columns[place])
        before = [_key(part) for part in first[:place]]
        behind = [_key(part) for part in first[place + 1 :]]
        steps = np.unique(np.diff(positions, axis=0))
        if positions.ndim == 1 and len(steps) == 1:
            evenly = range(positions[0], positions[-1] + steps[0], steps[0])
            stacked = self.apply(index, [array], key=(*before, _key(evenly), *behind))
        elif nodes[0].outputs[0].type.nbytes > most_copied:
            return None
        else:
            whole = (slice(None),)
            stacked = self.apply(gather, [array, self.capture(positions)], key=(*whole * place, ARRAY))
            if before or behind:
                stacked = self.apply(index, [stacked], key=(*before, *whole * positions.ndim, *behind))
        axis = sum(isinstance(part, slice) for part in before)
        others = (other for other in range(len(stacked.type.shape)) if other != axis)
        return self.apply(transpose, [stacked], axes=(axis, *others)) if axis else stacked


def _key(part: Part) -> int | slice:
    if isinstance(part, int):
        return part
    return slice(part.start, part.stop if part.stop >= 0 else None, part.step)


def join_elements(graph: Graph) -> Graph:
    """Replace concatenations of elements of one array, or of reshaped ones, by the stack of these elements."""
    makers = {var: node for node in graph.nodes for var in node.outputs}
    written = NodeBuilder()
    for node in graph.nodes:
        if node.primitive is concatenate and len(node.inputs) >= repetition.FEWEST_STEPS:
            written.source = node.source
            _join(node, makers, written)
        else:
            written.nodes.append(node)
    return replace(graph, nodes=tuple(written.nodes), captures=(*graph.captures, *written.captures))


def _join(node: Node, makers: dict[Var, Node], written: NodeBuilder) -> None:
    axis = dict(node.params)["axis"]
    joined: list[Atom] = []
    for (array, _), atoms in groupby(node.inputs, lambda atom: _element(atom, makers)):
        group = list(atoms)
        stacked = None
        if array is not None and len(group) >= repetition.FEWEST_STEPS:
            elements = [makers[atom] for atom in group if isinstance(atom, Var)]
            stacked = written.stack(
                [
                    makers[one.inputs[0]] if one.primitive is reshape and isinstance(one.inputs[0], Var) else one
                    for one in elements
                ]
            )
        if stacked is None:
            joined += group
            continue
        count, shape = len(group), group[0].type.shape
        if stacked.type.shape != (count, *shape):
            stacked = written.apply(reshape, [stacked], shape=(count, *shape))
        if axis:
            axes = (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1))
            stacked = written.apply(transpose, [stacked], axes=axes)
        whole = (*shape[:axis], count * shape[axis], *shape[axis + 1 :])
        joined.append(written.apply(reshape, [stacked], shape=whole))
    # The node stays, also of one operand: it is what others know as the result.
    written.nodes.append(replace(node, inputs=tuple(joined)))


def _element(atom: Atom, makers: dict[Var, Node]) -> tuple[Atom | None, Any]:
    """The array that a value, or what it is a reshape of, is an element of, and the shape of the value."""
    maker = makers.get(atom) if isinstance(atom, Var) else None
    if maker is not None and maker.primitive is reshape and isinstance(maker.inputs[0], Var):
        maker = makers.get(maker.inputs[0])
    if maker is None or parts_of(maker) is None:
        return None, None
    return maker.inputs[0], (atom.type.shape, maker.outputs[0].type.shape)
