"""Products of a matrix and its own transpose are symmetric: a quarter of them and more is copied instead of computed.

    c = matmul a (transpose a)    [48, 48]    ->    t = matmul (a[:24]) (transpose a)              [24, 48]
                                                    b = matmul (a[24:]) (transpose (a[24:]))       [24, 24]
                                                    c = t above the transpose of t[:, 24:] and b, side by side

The factors may be multiplied by numbers: `0.5 * x @ x.T`. Each element is the sum of the same products as before, or as its
mirror image has. Lower parts of large products are cut again.
"""

from dataclasses import field, replace
from typing import Any, Final

from pullback.core.primitive import Primitive
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.loops.form import applied
from pullback.rules.contractions import matmul
from pullback.rules.elementwise import mul, neg
from pullback.rules.indexing import index
from pullback.rules.joining import concatenate
from pullback.rules.shapes import transpose

#: Rows and steps of products that are cut, at the least: fewer gain less than two more kernels and a copy take.
LEAST_ROWS: Final = 32

#: Rows for a step, at the most: with few steps a product takes no longer than its copy.
_ROWS_PER_STEP: Final = 4

#: Rows are cut at whole vectors of this many numbers.
_UNIT: Final = 8


def halve_symmetric(graph: Graph) -> Graph:
    """Cut the symmetric products of a graph, inside loops and branches too."""
    makers = {var: node for node in graph.nodes for var in node.outputs}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.primitive is matmul and _is_symmetric(node, makers):
            nodes += _SymmetricProduct(node.source).nodes_of(node)
        else:
            nodes.append(node.with_bodies(halve_symmetric))
    if all(new is old for new, old in zip(nodes, graph.nodes, strict=False)):
        return graph
    return replace(graph, nodes=tuple(nodes))


def _is_symmetric(node: Node, makers: dict[Var, Node]) -> bool:
    """True if a node is a product of a matrix, large enough, and its transpose."""
    left, right = node.inputs
    if len(left.type.shape) != 2 or len(right.type.shape) != 2 or left.type.dtype != right.type.dtype:
        return False
    rows, steps = left.type.shape
    if rows != right.type.shape[1] or min(rows, steps) < LEAST_ROWS or rows > _ROWS_PER_STEP * steps:
        return False
    (one, one_turns), (other, other_turns) = _bare(left, makers), _bare(right, makers)
    return one is other and one_turns != other_turns


def _bare(atom: Atom, makers: dict[Var, Node]) -> tuple[Atom, bool]:
    """The matrix without the numbers it is multiplied by, and true if it is taken transposed."""
    turns = False
    while isinstance(atom, Var) and atom in makers:
        node = makers[atom]
        operands = [one for one in node.inputs if len(one.type.shape) == 2]
        if node.primitive is transpose:
            turns = not turns
        elif not _is_scaled(node, operands):
            break
        atom = operands[0]
    return atom, turns


def _is_scaled(node: Node, matrices: list[Atom]) -> bool:
    """True if a node is a matrix times a number, or its negative."""
    if node.primitive not in (mul, neg) or len(matrices) != 1 or matrices[0].type != node.outputs[0].type:
        return False
    return all(atom is matrices[0] or not atom.type.shape for atom in node.inputs)


@dataclass(slots=True)
class _SymmetricProduct:
    """The nodes that a symmetric product becomes, in order."""

    source: str
    nodes: list[Node] = field(default_factory=list)

    def nodes_of(self, node: Node) -> list[Node]:
        """The nodes, of which the last gives the result of the product."""
        self._product(*node.inputs)
        self.nodes[-1] = replace(self.nodes[-1], outputs=node.outputs)
        return self.nodes

    def _product(self, left: Atom, right: Atom) -> Atom:
        rows = left.type.shape[0]
        if rows < LEAST_ROWS:
            return self._apply(matmul, left, right)
        half = -(-rows // 2 // _UNIT) * _UNIT
        top = self._apply(matmul, self._apply(index, left, key=(slice(0, half),)), right)
        behind = (slice(None), slice(half, rows))
        corner = self._product(
            self._apply(index, left, key=(slice(half, rows),)), self._apply(index, right, key=behind)
        )
        mirrored = self._apply(transpose, self._apply(index, top, key=behind), axes=(1, 0))
        return self._apply(concatenate, top, self._apply(concatenate, mirrored, corner, axis=1), axis=0)

    def _apply(self, primitive: Primitive, *operands: Atom, **params: Any) -> Atom:
        self.nodes.append(applied(primitive, operands, self.source, **params))
        return self.nodes[-1].outputs[0]
