"""Joined and copied arrays whose parts are computed where they belong, so that nothing is copied.

    v, i, a, f             nest              v, i, a, f      nest, each written to its columns of j
    j = concatenate ...    four copies  ->   j

    p = matmul a b         product           p               product, written by the strides of c
    c = copy (transpose p) a copy            c

A part is the memory of the joined array from then on, as a view would be. It can be so where a kernel of this graph makes it,
it is not returned, and it is a part of one array alone:

- anything where its part is one piece in C order, as with rows,
- what nests and products make where its part is rows with gaps, as with columns, or rows and columns in another order, if only
  nests and products read it.

What is left of the operands is copied.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate

from pullback.backends.nests.fusion import REDUCTIONS, FusedNodes, Kernel, Kernels, SingleNode, nodes_of
from pullback.backends.nests.views import Access, Views, is_view, part_of, views_of
from pullback.core.types import Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.ir.strides import contiguous_strides
from pullback.rules.contractions import matmul
from pullback.rules.indexing import scatter
from pullback.rules.inplace import copy
from pullback.rules.joining import concatenate
from pullback.rules.shapes import reshape
from pullback.rules.storing import set_at


def joined_in_place(
    graph: Graph,
    found: Kernels,
    join_in: Callable[[Kernel], Node | None] | None = None,
    makes_parts: Callable[[Kernel, bool], bool] = lambda _kernel, _in_order: True,
) -> Kernels:
    """The same kernels, with places in joined arrays for the parts that can have one.

    `join_in` gives the join that a kernel is, if not all are `join_of`; `makes_parts` says whether a kernel can write to a part, which
    is one piece in C order or not.
    """
    joins = [node for kernel in found.kernels if (node := (join_in or join_of)(kernel)) is not None]
    if not joins:
        return found
    use = _Use.of(graph, found, frozenset(joins))
    views, placed = views_of(graph, found.layouts), dict[Var, Access]()
    for node in reversed(joins):  # what is a part itself comes after what it is a part of
        fresh: dict[Var, Access] = {}
        for operand, there in parts_of(node, views):
            own = _root_of_part(operand, views, use)
            # A value that `axis_orders` has given a layout keeps it.
            if (
                own is None
                or own in placed
                or own in fresh
                or own in found.layouts
                or node.outputs[0].type.dtype != own.type.dtype
            ):
                continue
            strides = _strides_of_root(own, views.access(operand), operand, there)
            if strides is None:
                continue
            is_in_order = strides == contiguous_strides(own.type.shape)
            if (is_in_order or use.bears(own, strides)) and makes_parts(use.makers[own], is_in_order):
                fresh[own] = Access(there.root, there.offset, strides)
        for own, there in fresh.items():  # one by one: finding all views anew for each join takes most of a compilation
            views.place(own, there, use.views)
        placed |= fresh
    return replace(found, views=views)


def join_of(kernel: Kernel) -> Node | None:
    """The node of a kernel that does nothing but join arrays, or copy one."""
    if isinstance(kernel, SingleNode):
        return kernel.node if kernel.node.primitive is concatenate else None
    first, *others = nodes_of(kernel)
    return first if not others and first.primitive is copy else None


def is_in_place(node: Node, number: int, views: Views) -> bool:
    """True if an operand of a join is where the join wants it."""
    operand, there = list(parts_of(node, views))[number]
    return views.access(operand) == there


def parts_of(node: Node, views: Views) -> Iterator[tuple[Atom, Access]]:
    """Each operand of a join with its part of the joined array; of a store what is stored, if it is neither stretched nor turned round."""
    whole = views.access(node.outputs[0])
    if node.primitive is copy:
        yield node.inputs[0], whole
        return
    if node.primitive in (scatter, set_at):
        there, shape = part_of(whole, node.outputs[0].type.shape, dict(node.params)["key"])
        if shape == node.inputs[-1].type.shape and min(there.strides, default=0) >= 0:
            yield node.inputs[-1], there
        return
    axis = dict(node.params)["axis"]
    starts = accumulate((atom.type.shape[axis] for atom in node.inputs), initial=0)
    for operand, start in zip(node.inputs, starts, strict=False):
        yield operand, Access(whole.root, whole.offset + start * whole.strides[axis], whole.strides)


def _root_of_part(operand: Atom, views: Views, use: "_Use") -> Var | None:
    """The value that has to be written to a part so that the operand is there: the operand, or what it is a view of."""
    root = views.access(operand).root
    if not isinstance(root, Var) or root.type.size != operand.type.size or not use.is_free(root):
        return None
    return root


def _strides_of_root(root: Var, access: Access, operand: Atom, there: Access) -> tuple[int, ...] | None:
    """Strides of a value such that its view, an operand of a join, lies in its part; None if there are none."""
    shape, own = operand.type.shape, contiguous_strides(root.type.shape)
    if _lies_in_order(shape, access.strides) and _lies_in_order(shape, there.strides):
        return own
    # Axes of one place aside they must be the same axes, in whatever order.
    axes = {
        (size, stride): wanted
        for size, stride, wanted in zip(shape, access.strides, there.strides, strict=True)
        if size != 1
    }
    wide = [(size, stride) for size, stride in zip(root.type.shape, own, strict=True) if size != 1]
    if set(wide) != set(axes) or len(wide) != sum(size != 1 for size in shape):
        return None
    return tuple(stride if size == 1 else axes[size, stride] for size, stride in zip(root.type.shape, own, strict=True))


def _lies_in_order(shape: Shape, strides: tuple[int, ...]) -> bool:
    """True if elements follow each other in C order."""
    expected = contiguous_strides(shape)
    return math.prod(shape) > 0 and all(
        size == 1 or stride == other for size, stride, other in zip(shape, strides, expected, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Use:
    """The makers, readers and views of each value."""

    makers: Mapping[Var, Kernel]
    readers: Mapping[Var, list[Node]]
    views: Mapping[Var, list[Node]]
    """The readers that are views of what they read."""
    returned: frozenset[Atom]
    """Outputs, and what outputs are views of."""
    joins: frozenset[Node]

    @classmethod
    def of(cls, graph: Graph, found: Kernels, joins: frozenset[Node]) -> "_Use":
        makers = {var: kernel for kernel in found.kernels for node in nodes_of(kernel) for var in node.outputs}
        readers: dict[Var, list[Node]] = {}
        for node in graph.nodes:
            for atom in node.inputs:
                if isinstance(atom, Var):
                    readers.setdefault(atom, []).append(node)
        views = {
            var: seen
            for var, nodes in readers.items()
            if (seen := [n for n in nodes if is_view(n) and n.inputs[0] is var])
        }
        returned = frozenset(found.views.access(atom).root for atom in graph.outputs)
        return cls(makers, readers, views, returned, joins)

    def is_free(self, root: Var) -> bool:
        """True if the memory of the value may be chosen freely."""
        return root in self.makers and root not in self.returned and root.type.size > 0

    def bears(self, root: Var, strides: tuple[int, ...]) -> bool:
        """True if the value can be made and read with these strides, and is written as contiguous elements."""
        maker = self.makers[root]
        wide = [stride for size, stride in zip(root.type.shape, strides, strict=True) if size != 1]
        if isinstance(maker, SingleNode):
            is_straight = maker.node.primitive is matmul and 1 in wide[-2:]
        else:
            node = next(node for node in nodes_of(maker) if root in node.outputs)
            is_straight = node.primitive not in REDUCTIONS and wide[-1:] == [1]
        return is_straight and self._is_read_by_strides(root)

    def _is_read_by_strides(self, value: Var) -> bool:
        return all(self._reads_by_strides(reader, value) for reader in self.readers.get(value, ()))

    def _reads_by_strides(self, node: Node, value: Var) -> bool:
        if node.primitive is matmul or node in self.joins:
            return True
        if not is_view(node):
            return isinstance(self.makers[node.outputs[0]], FusedNodes)
        if node.primitive is reshape:  # only by axes of one place is it a view whatever the strides
            before, after = ([size for size in var.type.shape if size != 1] for var in (value, node.outputs[0]))
            if before != after:
                return False
        return self._is_read_by_strides(node.outputs[0])
