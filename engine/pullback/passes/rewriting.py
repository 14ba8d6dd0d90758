"""Walking a graph and building the next one: what the simplifying passes share."""

from collections.abc import Callable
from dataclasses import replace

from pullback.ir.graph import Atom, Graph, Node, Var

Rewrite = Callable[[Node], Node | Atom]


def rewrite(graph: Graph, step: Rewrite) -> Graph:
    """Offer every node, its operands already rewritten, to `step`: it gives a node to keep, or an atom to use instead."""
    substitutes: dict[Var, Atom] = {}

    def current(atom: Atom) -> Atom:
        return substitutes.get(atom, atom) if isinstance(atom, Var) else atom

    nodes: list[Node] = []
    for node in graph.nodes:
        result = step(replace(node, inputs=tuple(current(atom) for atom in node.inputs)))
        if isinstance(result, Node):
            nodes.append(result)
        else:
            substitutes[node.outputs[0]] = result
    return replace(graph, nodes=tuple(nodes), outputs=tuple(current(atom) for atom in graph.outputs))
