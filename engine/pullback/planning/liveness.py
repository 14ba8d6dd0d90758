"""Lifetimes: how long the memory of every value is needed.

A view lives in the memory of what it is a view of, its *root*. The memory of a root is needed until the last use of the
root or of any view of it; what is returned is needed for ever.
"""

from pullback.dataclass import dataclass
from pullback.ir.graph import Graph, Var


@dataclass(frozen=True, slots=True)
class Liveness:
    """Roots, and the position in the program of the last use of each root (`FOREVER` for what is returned)."""

    roots: dict[Var, Var]
    last_use: dict[Var, int]

    def root(self, var: Var) -> Var:
        """The value whose memory this one lives in."""
        return self.roots.get(var, var)

    def dies_at(self, var: Var, position: int) -> bool:
        """True if nothing after this position uses the memory of a value."""
        return self.last_use.get(self.root(var), -1) <= position


def analyse(graph: Graph) -> Liveness:
    """Liveness over the whole program, forward and backward together."""
    roots: dict[Var, Var] = {}
    last_use: dict[Var, int] = {}
    for position, node in enumerate(graph.nodes):
        if node.primitive.aliases_operand and isinstance(node.inputs[0], Var):
            roots.update(dict.fromkeys(node.outputs, roots.get(node.inputs[0], node.inputs[0])))
        for atom in node.inputs:
            if isinstance(atom, Var):
                last_use[roots.get(atom, atom)] = position
    for position, numbers in graph.guards_after().items():
        for number in numbers:
            atom = graph.guards[number].atom
            if isinstance(atom, Var):  # read after the node at this position, so before the next one
                root = roots.get(atom, atom)
                last_use[root] = max(last_use.get(root, -1), position + 1)
    forever = len(graph.nodes) + 1
    for atom in graph.outputs:
        if isinstance(atom, Var):
            last_use[roots.get(atom, atom)] = forever
    return Liveness(roots, last_use)
