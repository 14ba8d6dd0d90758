"""A joint graph of values and gradients in two parts that run at different times.

Forward: what the values and the guards need, and nothing else. Backward: the rest. What the backward part reads of the
forward part is saved, as further outputs of the one and inputs of the other; views are not saved but taken again of what
they are views of, since that costs nothing. Numbers are saved: the pullback of `c[1] * p` then reads nothing of the caller's
array c, and need not look whether it has changed.
"""

from dataclasses import replace

from pullback.core.primitive import Effect
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var


@dataclass(frozen=True, slots=True)
class Partition:
    """The two graphs. The backward one takes what was saved, then all inputs of the joint graph."""

    forward: Graph
    backward: Graph
    saved: tuple[Var, ...]


def partition_joint(graph: Graph, inputs_count: int, values_count: int) -> Partition:
    """Split a graph whose first inputs are those of the function, the rest cotangents, and whose first outputs are values."""
    values, gradients = graph.outputs[:values_count], graph.outputs[values_count:]
    forward_nodes = _needed(graph, [*values, *(guard.atom for guard in graph.guards)])
    made_forward = {var: node for node in forward_nodes for var in node.outputs}
    given = {*graph.inputs, *(capture.var for capture in graph.captures)}
    own = set(map(id, forward_nodes))
    backward = [node for node in _needed(graph, gradients) if id(node) not in own]
    made_backward = {var for node in backward for var in node.outputs}
    again: set[int] = set()  # views of the forward part, taken again
    saved: dict[Var, None] = {}
    waiting = [atom for node in backward for atom in node.inputs] + list(gradients)
    while waiting:
        atom = waiting.pop()
        if not isinstance(atom, Var) or atom in given or atom in made_backward or atom in saved:
            continue
        node = made_forward[atom]
        if node.primitive.aliases_operand and node.primitive.effect is Effect.NONE and atom.type.shape:
            if id(node) not in again:
                again.add(id(node))
                waiting.extend(node.inputs)
        else:
            saved[atom] = None
    again.update(map(id, backward))
    backward_nodes = tuple(node for node in graph.nodes if id(node) in again)
    residuals = tuple(saved)
    return Partition(
        replace(graph, inputs=graph.inputs[:inputs_count], nodes=tuple(forward_nodes), outputs=(*values, *residuals)),
        Graph((*residuals, *graph.inputs), graph.captures, backward_nodes, gradients),
        residuals,
    )


def _needed(graph: Graph, atoms: list[Atom] | tuple[Atom, ...]) -> list[Node]:
    """The nodes that lead to these atoms, in order."""
    live = {atom for atom in atoms if isinstance(atom, Var)}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(var in live for var in node.outputs):
            kept.append(node)
            live.update(atom for atom in node.inputs if isinstance(atom, Var))
    return kept[::-1]
