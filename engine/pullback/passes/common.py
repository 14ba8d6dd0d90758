"""Common subexpressions: what has been computed is not computed again."""

from typing import Any

import numpy as np

from pullback.core.primitive import Effect
from pullback.ir.graph import Atom, Graph, Literal, Node
from pullback.ir.printer import format_graph
from pullback.passes.rewriting import rewrite


def merge_common(graph: Graph) -> Graph:
    """Replace every pure node that has an earlier twin by the twin."""
    seen: dict[Any, Node] = {}

    def step(node: Node) -> Node | tuple[Atom, ...]:
        if node.primitive.effect is not Effect.NONE:
            return node
        key = (
            node.primitive.name,
            tuple(identity(atom) for atom in node.inputs),
            tuple((name, value_identity(value)) for name, value in node.params),
        )
        twin = seen.setdefault(key, node)
        return node if twin is node else twin.outputs

    return rewrite(graph, step)


def identity(atom: Atom) -> Any:
    """What two operands must share to be the same, as something hashable."""
    return (value_identity(atom.value), atom.type) if isinstance(atom, Literal) else atom


def value_identity(value: Any) -> Any:
    """What two values must share to be one value in every respect, as something hashable."""
    if isinstance(value, tuple | list):
        return (type(value), *map(value_identity, value))
    if isinstance(value, slice):
        return (slice, *map(value_identity, (value.start, value.stop, value.step)))
    if isinstance(value, np.ndarray):
        return (np.ndarray, value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, bool | int | float | complex | np.generic):
        return (type(value), repr(value))  # repr tells -0.0 from 0.0, == would not
    if isinstance(value, str | bytes | np.dtype | Graph | None):
        return (type(value), format_graph(value, sources=False) if isinstance(value, Graph) else value)
    return (type(value), id(value))  # the node keeps it alive
