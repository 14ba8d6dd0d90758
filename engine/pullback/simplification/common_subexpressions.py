"""Common subexpressions: what has been computed is not computed again."""

from typing import Any

import numpy as np

from pullback.core.primitive import Effect
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.ir.printer import format_graph
from pullback.simplification.rewriting import rewrite

#: Captured arrays of more bytes are not compared: matrices of some hundred rows are below.
_COMPARED_BYTES = 1 << 20


def merge_common(graph: Graph) -> Graph:
    """Replace every pure node by the first one equal to it, and so every captured array."""
    first_of: dict[Any, Node] = {}
    earlier = _equal_captures(graph)

    def step(node: Node) -> Node | tuple[Atom, ...]:
        if earlier:
            node = node.reading(
                tuple(earlier.get(atom, atom) if isinstance(atom, Var) else atom for atom in node.inputs)
            )
        if node.primitive.effect is not Effect.NONE:
            return node
        key = (
            node.primitive.name,
            tuple(identity(atom) for atom in node.inputs),
            tuple((name, value_identity(value)) for name, value in node.params),
        )
        same = first_of.setdefault(key, node)
        return node if same is node else same.outputs

    return rewrite(graph, step)


def _equal_captures(graph: Graph) -> dict[Var, Var]:
    """Captured arrays that equal an earlier one to the last bit, with that one: a constant that is made in every turn."""
    first: dict[Any, Var] = {}
    earlier: dict[Var, Var] = {}
    for capture in graph.captures:
        if capture.var.type.nbytes <= _COMPARED_BYTES and isinstance(capture.value, np.ndarray):
            same = first.setdefault((capture.var.type, value_identity(capture.value)), capture.var)
            if same is not capture.var:
                earlier[capture.var] = same
    return earlier


def identity(atom: Atom) -> Any:
    """The key of an operand: equal operands have equal keys."""
    return (value_identity(atom.value), atom.type) if isinstance(atom, Literal) else atom


def value_identity(value: Any) -> Any:
    """The key of a value in every respect: equal values have equal keys."""
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
