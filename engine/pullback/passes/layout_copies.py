"""Copies where NumPy would make them itself: a reshape that is no view, a rule that reads its operand as one line.

A plan that keeps its memory gives such a copy a buffer. Values that the plan makes and, as their layout is unknown, its
inputs are taken to be contiguous.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

import numpy as np

from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.ir.strides import PlaceArray, is_in_order, places
from pullback.rules.indexing import index
from pullback.rules.inplace import copy
from pullback.rules.shapes import broadcast_to, reshape, transpose

_VIEWS = frozenset({index, transpose, broadcast_to, reshape})


def copy_for_layouts(graph: Graph) -> Graph:
    """Put a copy in front of what needs another layout, inside loops and branches too."""
    layouts: dict[Var, PlaceArray] = {}
    nodes: list[Node] = []
    variables = (
        *graph.inputs,
        *(capture.var for capture in graph.captures),
        *(var for node in graph.nodes for var in node.outputs),
    )
    numbers = count(max((var.index for var in variables), default=-1) + 1)
    for node in graph.nodes:
        inner = node.with_bodies(copy_for_layouts)
        inputs = list(inner.inputs)
        for position, atom in enumerate(inputs):
            if isinstance(atom, Var) and not _fits(node, position, _layout(atom, layouts)):
                copied = inputs[position] = Var(next(numbers), atom.type)
                nodes.append(Node(copy, (atom,), (), (copied,), node.source))
        inner = inner.reading(tuple(inputs))
        nodes.append(inner)
        if node.primitive in _VIEWS and node.outputs[0].type.shape:
            layouts[node.outputs[0]] = node.primitive.evaluate(_layout(inputs[0], layouts), **dict(node.params))
    return replace(graph, nodes=tuple(nodes))


def places_of(graph: Graph) -> dict[Atom, PlaceArray]:
    """Layouts of values without copies: inputs and results of nodes in C order, views as NumPy makes them."""
    layouts: dict[Atom, PlaceArray] = {}
    for atom in (*graph.inputs, *(capture.var for capture in graph.captures)):
        layouts[atom] = places(atom.type.shape)
    for node in graph.nodes:
        for var in node.outputs:
            layouts[var] = places(var.type.shape)
        if node.primitive in _VIEWS and node.outputs[0].type.shape and isinstance(node.inputs[0], Var):
            result, operand = node.outputs[0], layouts[node.inputs[0]]
            if node.primitive is not reshape:
                layouts[result] = node.primitive.evaluate(operand, **dict(node.params))
            elif _fits(node, 0, operand):
                layouts[result] = np.reshape(operand, result.type.shape, copy=False)
    return layouts


def _layout(atom: Atom, layouts: Mapping[Var, PlaceArray]) -> PlaceArray:
    layout = layouts.get(atom) if isinstance(atom, Var) else None
    return places(atom.type.shape) if layout is None else layout


def _fits(node: Node, position: int, layout: PlaceArray) -> bool:
    if position in node.primitive.in_lines:
        return is_in_order(layout)
    if node.primitive is not reshape:
        return True
    try:
        np.reshape(layout, dict(node.params)["shape"], copy=False)
    except ValueError:
        return False
    return True
