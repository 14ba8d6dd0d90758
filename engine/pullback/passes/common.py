"""Common subexpressions: what has been computed is not computed again."""

from typing import Any

from pullback.ir.graph import Atom, Graph, Literal, Node
from pullback.ir.printer import show_param
from pullback.passes.rewriting import rewrite
from pullback.primitive import Effect


def merge_common(graph: Graph) -> Graph:
    """Replace every pure node that has an earlier twin by the twin."""
    seen: dict[Any, Node] = {}

    def step(node: Node) -> Node | Atom:
        if node.primitive.effect is not Effect.NONE or len(node.outputs) > 1:
            return node
        key = (
            node.primitive.name,
            tuple(_identity(atom) for atom in node.inputs),
            tuple((name, show_param(value)) for name, value in node.params),
        )
        twin = seen.setdefault(key, node)
        return node if twin is node else twin.outputs[0]

    return rewrite(graph, step)


def _identity(atom: Atom) -> Any:
    # repr tells -0.0 from 0.0 and the types apart, == would not.
    return (repr(atom.value), atom.type) if isinstance(atom, Literal) else atom
