"""Checked results: a result computed in another way is used if it can be trusted, else it is computed as written.

    t = …;  ok = …    ->    s = t                  if ok
                            the nodes as written   else

Both ways are in the graph, so every backend gives the same, and what is not finite, say, costs little more than it would have.
"""

from collections.abc import Sequence
from dataclasses import replace

from pullback.control.switch_rule import switch
from pullback.ir.graph import Atom, Graph, Node, Var


def taken_or_written(node: Node, written: Sequence[Node], trusted: Atom, value: Atom) -> Node:
    """The node that gives the value if it is trusted, else computes the result by the nodes as they were written."""
    leaves = read_by([*written, node])
    branches = (_as_written(node, written, leaves, value), _as_given(leaves, value))
    return Node(switch, (trusted, value, *leaves), (("branches", branches),), node.outputs, node.source)


def read_by(nodes: Sequence[Node]) -> list[Var]:
    """The values that nodes read and do not make, each once."""
    own = {var for node in nodes for var in node.outputs}
    return list(dict.fromkeys(a for node in nodes for a in node.inputs if isinstance(a, Var) and a not in own))


def _as_given(leaves: Sequence[Var], value: Atom) -> Graph:
    """The branch that takes the value."""
    inputs = [Var(-1, atom.type) for atom in (value, *leaves)]
    return Graph(tuple(inputs), (), (), (inputs[0],))


def _as_written(node: Node, written: Sequence[Node], leaves: Sequence[Var], value: Atom) -> Graph:
    """The branch that computes it as the program has it."""
    given = [Var(-1, atom.type) for atom in (value, *leaves)]
    own: dict[Atom, Var] = dict(zip(leaves, given[1:], strict=True))
    nodes = []
    for old in (*written, node):
        inputs = tuple(own.get(atom, atom) for atom in old.inputs)
        outputs = tuple(Var(-1, var.type) for var in old.outputs)
        own.update(zip(old.outputs, outputs, strict=True))
        nodes.append(replace(old, inputs=inputs, outputs=outputs))
    return Graph(tuple(given), (), tuple(nodes), (own[node.outputs[0]],))
