"""Sinking: values that are computed where they are read, instead of being stored.

    nest 1:  m = sub x c;  o = mul n m         a product reads m, nest 2 reads o
    nest 2:  s = add o q; …

    ->       nest 2:  o = mul n m;  s = add o q; …      m is in memory anyhow, o needs none

A node of a nest that only one later nest over the same space reads goes there, if what it is computed from is in memory
at that time. It is computed as often as before; a large operand that is not needed elsewhere for so long takes the
place of the result.
"""

from collections import Counter, defaultdict
from dataclasses import replace

from pullback.backends.nests.fusion import (
    MOST_NODES,
    FusedNodes,
    Kernels,
    SingleNode,
    is_elementwise,
    kept_values,
    nodes_of,
    read_elsewhere,
)
from pullback.core.types import Shape
from pullback.ir.graph import Atom, Graph, Node, Var

#: Bytes of a value from which on it is worth a thought: those that the first level of the cache does not hold.
_LARGE_BYTES = 1 << 15

#: An operand of less than this part of the result costs nothing to read.
_SMALL = 4


def sunk(found: Kernels, graph: Graph) -> Kernels:
    """The kernels, with nodes in the nests that read them."""
    kept = kept_values(found, graph)
    if not any(var.type.nbytes >= _LARGE_BYTES for var in kept):
        return found
    sinking = _Sinking(found, graph, kept)
    for number in reversed(range(len(found.kernels))):
        for node in reversed(list(nodes_of(found.kernels[number]))):
            sinking.try_to_sink(node, number)
    return replace(found, kernels=tuple(kernel for kernel in sinking.kernels if any(nodes_of(kernel))))


class _Sinking:
    def __init__(self, found: Kernels, graph: Graph, kept: set[Var]) -> None:
        self._found = found
        self.views = found.views
        self.kernels = list(found.kernels)
        self._kept = kept
        self._fixed = {self.views.access(atom).root for atom in graph.outputs}
        """The values that have to be in memory: they are returned, read as views, or by positions."""
        self._readings: defaultdict[Atom, Counter[int]] = defaultdict(Counter)
        """By value, how often each kernel reads it."""
        for number, kernel in enumerate(found.kernels):
            for node in nodes_of(kernel):
                self._fixed.update(self.views.access(atom).root for atom in read_elsewhere(node))
                for atom in node.inputs:
                    root = self.views.access(atom).root
                    self._readings[root][number] += 1
                    if root is not atom:
                        self._fixed.add(root)

    def try_to_sink(self, node: Node, number: int) -> None:
        """Put a node of a kernel into the nest that reads its result, where that is one and gains by it."""
        nest, result = self.kernels[number], node.outputs[0]
        if not isinstance(nest, FusedNodes) or result in self._fixed or result not in self._kept:
            return
        if not is_elementwise(node) or result.type.nbytes < _LARGE_BYTES or len(self._readings[result]) != 1:
            return
        (reader,) = self._readings[result]
        target = self.kernels[reader]
        if not isinstance(target, FusedNodes) or reader == number or target.space != nest.space:
            return
        if len(target.nodes) >= MOST_NODES or not self._is_there(node, nest, target):
            return
        if not self._found.can_wait(SingleNode(node), self.kernels[number + 1 : reader]):
            return
        self.kernels[number] = self._nest([one for one in nest.nodes if one is not node], nest.space)
        self.kernels[reader] = self._nest([node, *target.nodes], nest.space)
        self._kept.discard(result)
        for atom in node.inputs:
            readings = self._readings[self.views.access(atom).root]
            readings[reader] += 1
            readings[number] -= 1
            if not readings[number]:
                del readings[number]

    def _is_there(self, node: Node, nest: FusedNodes, target: FusedNodes) -> bool:
        """True if the operands of a node are in memory, with one large one at most that the target does not read anyhow."""
        roots = {self.views.access(atom).root for atom in node.inputs}
        if any(root in nest.values and root not in self._kept for root in roots):
            return False
        result = node.outputs[0].type.nbytes
        return sum(root not in target.read and _SMALL * root.type.nbytes > result for root in roots) <= 1

    def _nest(self, nodes: list[Node], space: Shape) -> FusedNodes:
        made = FusedNodes(space)
        for node in nodes:
            made.add(node, self.views)
        return made
