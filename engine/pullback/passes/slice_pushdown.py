"""Slices of elementwise values, taken of the operands instead, where nothing is computed twice by it.

    f = add d e                           d1 = index d {key=(:, 0:4)}
    g = index f {key=(:, 0:4)}     ->     e1 = index e {key=(:, 0:4)}
    h = index f {key=(:, 4:8)}            g = add d1 e1 …

A slice of an operand is a view, so what was computed, stored and read again is computed where it is used: the gates of a
recurrent layer are cut out of one sum. It is done where slices are the only use of a value, all together no larger than it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pullback.core.kinds import Scalar
from pullback.core.types import Shape
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.loops.form import applied
from pullback.rules.indexing import index
from pullback.simplification.dead_code import drop_dead

#: The depth below a slice down to which elementwise nodes are found.
_ROUNDS = 4


def slice_operands(graph: Graph) -> Graph:
    """Rewrite what is on this page, inside loops and branches too."""
    graph = replace(graph, nodes=tuple(node.with_bodies(slice_operands) for node in graph.nodes))
    for _ in range(_ROUNDS):
        sliced = _sliced(graph)
        if not sliced:
            break
        nodes: list[Node] = []
        for node in graph.nodes:
            maker = sliced.get(node.inputs[0]) if node.primitive is index else None
            nodes += [node] if maker is None else _of_operands(maker, node)
        graph = drop_dead(replace(graph, nodes=tuple(nodes)))
    return graph


def _sliced(graph: Graph) -> dict[Atom, Node]:
    """Elementwise values that are read as slices alone, with their nodes."""
    readers: dict[Atom, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for atom in node.inputs:
            readers[atom].append(node)
    seen = set(graph.ends())
    return {
        node.outputs[0]: node
        for node in graph.nodes
        if isinstance(node.primitive, Scalar)
        and node.outputs[0] not in seen
        and _are_slices(readers[node.outputs[0]], node.outputs[0])
    }


def _are_slices(readers: Sequence[Node], value: Var) -> bool:
    sizes = [reader.outputs[0].type.size for reader in readers]
    return (
        bool(readers)
        and all(reader.primitive is index and _keys(reader) is not None for reader in readers)
        and sum(sizes) <= value.type.size
    )


def _keys(node: Node) -> tuple[slice, ...] | None:
    """The selection of a node, if that is a slice of each axis."""
    key: Any = dict(node.params)["key"]
    keys = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(one, slice) for one in keys):
        return None
    rest = len(node.inputs[0].type.shape) - len(keys)
    return (*keys, *[slice(None)] * rest) if rest >= 0 else None


def _of_operands(maker: Node, node: Node) -> list[Node]:
    """An elementwise node on the slices of its operands."""
    keys, shape = _keys(node), maker.outputs[0].type.shape
    assert keys is not None  # noqa: S101
    nodes: list[Node] = []
    operands: list[Atom] = []
    for atom in maker.inputs:
        key = _key_of_operand(atom.type.shape, shape, keys)
        if all(one == slice(None) for one in key):
            operands.append(atom)
        else:
            nodes.append(applied(index, [atom], node.source, key=key))
            operands.append(nodes[-1].outputs[0])
    return [*nodes, replace(maker, inputs=tuple(operands), outputs=node.outputs)]


def _key_of_operand(own: Shape, shape: Shape, keys: Sequence[slice]) -> tuple[slice, ...]:
    """The key of an operand for a slice of the result that the operand is broadcast to."""
    missing = len(shape) - len(own)
    return tuple(
        slice(None) if size == 1 != whole else key
        for size, whole, key in zip(own, shape[missing:], keys[missing:], strict=True)
    )
