"""Keys that select a whole array, in order: a value stored by one is the array in another shape.

    b = scatter u {key=(:, :, None), shape=(20, 20)}    ->    b = reshape u
    c = add_at b v {key=(:, None, :)}                   ->    c = add b (reshape v)

Cotangents of `x[:, None]` and its like are such stores. A reshape is no kernel, and a sum joins those around it. The values are the same
to the last bit.
"""

from dataclasses import replace

from pullback.core.types import Shape
from pullback.ir.graph import Graph, Node
from pullback.ir.strides import is_in_order, places, selected
from pullback.passes.loops.form import applied
from pullback.rules.elementwise import add
from pullback.rules.indexing import scatter
from pullback.rules.shapes import reshape
from pullback.rules.storing import add_at


def reshape_wholes(graph: Graph) -> Graph:
    """Rewrite what is on this page, inside loops and branches too."""
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += _rewritten(node) or [node.with_bodies(reshape_wholes)]
    return graph if tuple(nodes) == graph.nodes else replace(graph, nodes=tuple(nodes))


def _rewritten(node: Node) -> list[Node]:
    """The nodes that replace a store to all places of an array; none for a store of other places, or another dtype."""
    if node.primitive not in (scatter, add_at) or len(node.inputs) != (1 if node.primitive is scatter else 2):
        return []
    result, stored = node.outputs[0].type, node.inputs[-1].type
    if stored.dtype != result.dtype or stored.weak or stored.size != result.size or not result.size:
        return []
    if not _selects_all(dict(node.params)["key"], result.shape, stored.shape):
        return []
    shaped = applied(reshape, node.inputs[-1:], node.source, shape=result.shape)
    if node.primitive is scatter:
        return [replace(shaped, outputs=node.outputs)]
    total = applied(add, [node.inputs[0], *shaped.outputs], node.source)
    return [shaped, replace(total, outputs=node.outputs)]


def _selects_all(key: object, shape: Shape, stored: Shape) -> bool:
    view = selected(places(shape), key)
    return view.shape == stored and is_in_order(view)
