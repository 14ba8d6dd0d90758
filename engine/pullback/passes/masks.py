"""Masks of what a pooling spreads: what there is to spread is masked instead, which is as much smaller as a window is large.

m = greater x 0                 ->    m = greater y 0
s = max_spread v x y                  u = where m v 0
z = where m s 0                       z = max_spread u x y

This is what relu before max_pool leaves in reverse. Exact: elements that take part in a maximum have its value (or are
nan where it is nan), so a comparison of them gives what it gives of the maximum; the others are 0 in both.
"""

from dataclasses import replace

import numpy as np

from pullback.ir.graph import Graph, Literal, Node, Var
from pullback.passes.loops.form import applied
from pullback.rules.elementwise import where
from pullback.rules.logic import COMPARISONS
from pullback.rules.pooling import max_spread


def mask_before_spreading(graph: Graph) -> Graph:
    """Bring every such mask before the spreading."""
    uses = graph.uses()
    makers = {var: node for node in graph.nodes for var in node.outputs}
    nodes: list[Node] = []
    for node in graph.nodes:
        pattern = _masked_spreading(node, makers)
        if pattern is None or uses[pattern[1].outputs[0]] != 1:
            nodes.append(node)
            continue
        comparison, spreading = pattern
        v, x, y = spreading.inputs
        mask = applied(comparison.primitive, [y, comparison.inputs[1]], node.source)
        chosen = applied(where, [mask.outputs[0], v, node.inputs[2]], node.source)
        nodes += [mask, chosen, replace(spreading, inputs=(chosen.outputs[0], x, y), outputs=node.outputs)]
    return replace(graph, nodes=tuple(nodes))


def _masked_spreading(node: Node, makers: dict[Var, Node]) -> tuple[Node, Node] | None:
    """The comparison and the spreading that a node chooses by and from."""
    if node.primitive is not where:
        return None
    mask, chosen, other = node.inputs
    comparison = makers.get(mask) if isinstance(mask, Var) else None
    spreading = makers.get(chosen) if isinstance(chosen, Var) else None
    if comparison is None or spreading is None or spreading.primitive is not max_spread:
        return None
    v, x, _ = spreading.inputs
    is_of_x = (
        comparison.primitive in COMPARISONS and comparison.inputs[0] is x and isinstance(comparison.inputs[1], Literal)
    )
    is_zero = isinstance(other, Literal) and other.type.weak and other.value == 0 and not np.signbit(other.value)
    same_type = node.outputs[0].type == spreading.outputs[0].type and v.type.dtype == node.outputs[0].type.dtype
    return (comparison, spreading) if is_of_x and is_zero and same_type else None
