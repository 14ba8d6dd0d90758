"""Walking a graph and building the next one: what the simplifying passes share."""

from collections.abc import Callable

from pullback.ir.graph import Atom, Graph, Node, Var

Rewrite = Callable[[Node], Node | Atom | tuple[Atom, ...]]


def rewrite(graph: Graph, step: Rewrite) -> Graph:
    """Offer every node, its operands already rewritten, to `step`.

    It gives a node to keep, or what to use instead: an atom, or a tuple of them for a node of several results.
    """
    substitutes: dict[Var, Atom] = {}

    def current(atom: Atom) -> Atom:
        return substitutes.get(atom, atom) if isinstance(atom, Var) else atom

    nodes: list[Node] = []
    for node in graph.nodes:
        result = step(node.reading(tuple([current(atom) for atom in node.inputs])) if substitutes else node)
        if isinstance(result, Node):
            nodes.append(result)
        else:
            substitutes.update(zip(node.outputs, result if isinstance(result, tuple) else (result,), strict=True))
    return graph.rewritten(nodes, current)
