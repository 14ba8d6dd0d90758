"""Joined arrays whose parts are computed where they belong, so that nothing is copied to join them.

    v, i, a, f             nest            v, i, a, f      nest, each written to its columns of j
    j = concatenate ...    four copies ->  j

A part is the memory of the joined array from then on, as a view would be. It can be so where a kernel of this graph makes it,
nobody is returned it, and it is a part of one array alone:

- anything where its part is one piece in C order, as with rows,
- what nests and products make where its part is rows with gaps, as with columns, if only nests and products read it.

What is left of the operands is copied.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from pullback.backends.native.emission import contiguous_strides
from pullback.backends.native.fusing import REDUCTIONS, Alone, Fused, Kernel, Kernels, nodes_of
from pullback.backends.native.views import Access, Layouts, Views, is_view, views_of
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.ir.types import Shape
from pullback.rules.contractions import matmul
from pullback.rules.joining import concatenate
from pullback.rules.shapes import reshape


def joined_in_place(graph: Graph, found: Kernels, layouts: Layouts) -> Kernels:
    """The same kernels, with places in joined arrays for the parts that can have one."""
    joins = [
        kernel.node for kernel in found.kernels if isinstance(kernel, Alone) and kernel.node.primitive is concatenate
    ]
    if not joins:
        return found
    use = _Use.of(graph, found)
    views, placed = found.views, dict[Var, Access]()
    for node in reversed(joins):  # what is a part itself comes after what it is a part of
        for operand, there in _places(node, views):
            own = _root_of_part(operand, views, use)
            if own is None or own in placed or node.outputs[0].type.dtype != own.type.dtype:
                continue
            strides = _strides_of_root(own, views.access(operand), operand, there)
            if strides is None:
                continue
            if strides == contiguous_strides(own.type.shape) or use.bears_gaps(own):
                placed[own] = Access(there.root, there.offset, strides)
        views = views_of(graph, layouts, placed)
    return Kernels(found.kernels, views)


def is_in_place(node: Node, number: int, views: Views) -> bool:
    """Whether an operand of a join is where the join wants it."""
    operand, there = list(_places(node, views))[number]
    return views.access(operand) == there


def _places(node: Node, views: Views) -> Iterator[tuple[Atom, Access]]:
    """Each operand of a join with its part of the joined array."""
    whole, axis = views.access(node.outputs[0]), dict(node.params)["axis"]
    starts = accumulate((atom.type.shape[axis] for atom in node.inputs), initial=0)
    for operand, start in zip(node.inputs, starts, strict=False):
        yield operand, Access(whole.root, whole.offset + start * whole.strides[axis], whole.strides)


def _root_of_part(operand: Atom, views: Views, use: "_Use") -> Var | None:
    """What has to be written to a part so that the operand is there: the operand, or what it is a view of."""
    root = views.access(operand).root
    if not isinstance(root, Var) or root.type.size != operand.type.size or not use.is_free(root):
        return None
    return root


def _strides_of_root(root: Var, access: Access, operand: Atom, there: Access) -> tuple[int, ...] | None:
    """How a value lies whose view, an operand of a join, lies in its part; None where there is no such way."""
    shape, own = operand.type.shape, contiguous_strides(root.type.shape)
    if _lies_in_order(shape, access.strides) and _lies_in_order(shape, there.strides):
        return own
    # Axes of one place aside they must be the same array.
    wide = [(size, stride) for size, stride in zip(shape, there.strides, strict=True) if size != 1]
    if [size for size in root.type.shape if size != 1] != [size for size, _ in wide]:
        return None
    if [stride for size, stride in zip(shape, access.strides, strict=True) if size != 1] != [
        stride for size, stride in zip(root.type.shape, own, strict=True) if size != 1
    ]:
        return None
    following = iter(stride for _, stride in wide)
    return tuple(1 if size == 1 else next(following) for size in root.type.shape)


def _lies_in_order(shape: Shape, strides: tuple[int, ...]) -> bool:
    """Whether elements follow each other in C order."""
    expected = contiguous_strides(shape)
    return math.prod(shape) > 0 and all(
        size == 1 or stride == other for size, stride, other in zip(shape, strides, expected, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Use:
    """Who makes and who reads what."""

    makers: Mapping[Var, Kernel]
    readers: Mapping[Var, list[Node]]
    returned: frozenset[Atom]
    """Outputs, and what outputs are views of."""

    @classmethod
    def of(cls, graph: Graph, found: Kernels) -> "_Use":
        makers = {var: kernel for kernel in found.kernels for node in nodes_of(kernel) for var in node.outputs}
        readers: dict[Var, list[Node]] = {}
        for node in graph.nodes:
            for atom in node.inputs:
                if isinstance(atom, Var):
                    readers.setdefault(atom, []).append(node)
        returned = frozenset(found.views.access(atom).root for atom in graph.outputs)
        return cls(makers, readers, returned)

    def is_free(self, root: Var) -> bool:
        """Whether it may lie anywhere."""
        return root in self.makers and root not in self.returned and root.type.size > 0

    def bears_gaps(self, root: Var) -> bool:
        """Whether whoever makes and reads it does so by strides."""
        maker = self.makers[root]
        node = next(node for node in nodes_of(maker) if root in node.outputs)
        is_straight = node.primitive not in REDUCTIONS if isinstance(maker, Fused) else node.primitive is matmul
        return is_straight and all(self._reads_by_strides(reader, root) for reader in self.readers.get(root, ()))

    def _reads_by_strides(self, node: Node, root: Var) -> bool:
        if node.primitive in (matmul, concatenate):
            return True
        if not is_view(node):
            return isinstance(self.makers[node.outputs[0]], Fused)
        # The one view that is allowed is the one with other axes of one place; whoever reads that must be the join.
        wide, seen = ([size for size in var.type.shape if size != 1] for var in (root, node.outputs[0]))
        only_joined = all(reader.primitive is concatenate for reader in self.readers.get(node.outputs[0], ()))
        return node.primitive is reshape and wide == seen and only_joined
