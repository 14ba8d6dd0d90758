"""The order in which the axes of values lie in memory.

A value is stored in C order, unless nests and products are faster with another one:

    c = matmul a b                    c[25, 10, 1000]
    d = add (transpose c) e           d[1000, 25, 10]: c or e lies across the vectors; all with axes in the order of c do not

Axes that are one and the same are found first: those that elementwise nodes, products, views and reductions bring together.
Where a nest has operands that are contiguous along different axes, each of these is tried as the last one of all values that
have it, and what nests and products would take is estimated; the best is kept if it is worth it. Only what nests and products
write, and only they read, is arranged: everything else gets and gives what it always does.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import field

from pullback.backends.native.emission import StoredArray
from pullback.backends.native.kernels.axes import cycles_of_nest
from pullback.backends.native.kernels.product import described
from pullback.backends.native.kernels.tile_choice import cycles_of_product
from pullback.backends.nests.fusion import (
    REDUCTIONS,
    FusedNodes,
    Kernel,
    SingleNode,
    is_elementwise,
    nodes_of,
    reduced_axes,
)
from pullback.backends.nests.nest_building import nest_of
from pullback.backends.nests.views import Layouts, Views, holding_views, is_view, views_of
from pullback.control.switch_rule import switch
from pullback.core.types import Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.ir.strides import contiguous_strides
from pullback.rules.contractions import matmul
from pullback.rules.shapes import transpose

#: Elements of a value from which on it matters how it lies.
_LARGE = 4096

#: The largest part of the cycles before that may remain: estimates are not more exact.
_WORTH_IT = 0.85

#: Axes that are tried at most: the time that long programs take is bounded.
_MOST_TRIED = 8

#: An axis of a value that has memory of its own.
_Axis = tuple[Var, int]


def arranged(graph: Graph, kernels: Sequence[Kernel], kept: Collection[Var], vector_bits: int) -> Layouts:
    """Strides of the values not stored in C order. Inputs are not considered: their layout is not known yet."""
    if not any(node.primitive is transpose for node in graph.nodes):
        return {}  # everything lies in C order, and is read in that order
    views = views_of(graph, {})
    disputed = _disputed(kernels, views, kept)
    if not disputed:
        return {}
    axes = _axes_of(graph, views)
    movable = _movable(graph, kept, views)
    offers = _Offers(graph, kernels, kept, vector_bits)
    wanted = list(dict.fromkeys(axes.find(axis) for axis, _ in disputed.most_common()))[:_MOST_TRIED]
    found: dict[Var, tuple[int, ...]] = {}
    while wanted:
        made = [offers.of(axis, axes, movable - set(found), found) for axis in wanted]
        best = max((offer for offer in made if offer.is_worth_it), key=lambda offer: offer.saved, default=None)
        if best is None:
            break
        found.update(best.layouts)
        wanted.remove(best.axis)
    return found


# --- axes that are one and the same --------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Axes:
    """Axes in classes of those that are one and the same."""

    _parents: dict[_Axis, _Axis] = field(default_factory=dict)

    def find(self, axis: _Axis) -> _Axis:
        """The axis that stands for its class."""
        while (parent := self._parents.get(axis, axis)) != axis:
            axis = parent
        return axis

    def join(self, a: _Axis | None, b: _Axis | None) -> None:
        """Two axes are one."""
        if a is not None and b is not None:
            one, other = self.find(a), self.find(b)
            if one != other:
                self._parents[one] = other


def _axes_of(graph: Graph, views: Views) -> _Axes:
    axes = _Axes()

    def own(atom: Atom, number: int) -> _Axis | None:
        return _axis(views, atom, number)

    for node in graph.nodes:
        result = node.outputs[0]
        rank = len(result.type.shape)
        if is_elementwise(node):
            for operand in node.inputs:
                missing = rank - len(operand.type.shape)
                for number in range(missing, rank):
                    axes.join(own(result, number), own(operand, number - missing))
        elif node.primitive in REDUCTIONS:
            operand, reduced = node.inputs[0], reduced_axes(node)
            left = [
                number
                for number in range(len(operand.type.shape))
                if rank == len(operand.type.shape) or number not in reduced
            ]
            for number, before in enumerate(left):
                axes.join(own(result, number), own(operand, before))
        elif node.primitive is matmul:
            _join_product(node, own, axes)
    return axes


def _join_product(node: Node, own: Callable[[Atom, int], _Axis | None], axes: _Axes) -> None:
    """Rows of A are rows of C, columns of B are columns of C, and the places of a batch are those of all three."""
    (a, b), c = node.inputs, node.outputs[0]
    if len(a.type.shape) < 2 or len(b.type.shape) < 2:
        return
    axes.join(own(a, -1), own(b, -2))
    axes.join(own(a, -2), own(c, -2))
    axes.join(own(b, -1), own(c, -1))
    for factor in (a, b):
        for number in range(3, len(factor.type.shape) + 1):
            axes.join(own(factor, -number), own(c, -number))


def _axis(views: Views, atom: Atom, number: int) -> _Axis | None:
    """The axis of the memory of a value in C order that an axis of `atom` runs along; None for some axes of views."""
    access, size = views.access(atom), atom.type.shape[number]
    if isinstance(access.root, Var) and size > 1 and access.root.type.dtype.kind != "c":
        shape, stride = access.root.type.shape, access.strides[number]
        for own, found in enumerate(zip(shape, contiguous_strides(shape), strict=True)):
            if found == (size, stride):
                return access.root, own
    return None


# --- which of them is last ------------------------------------------------------------------------------------------------
def _disputed(kernels: Sequence[Kernel], views: Views, kept: Collection[Var]) -> "Counter[_Axis]":
    """Axes along which a nest has contiguous operands, while others of its operands are so along another one."""
    found: Counter[_Axis] = Counter()
    for kernel in kernels:
        if not isinstance(kernel, FusedNodes) or math.prod(kernel.space) < _LARGE:
            continue
        nest, operands = nest_of(kernel, views, kept)
        along: defaultdict[int, list[_Axis]] = defaultdict(list)
        lying = [(read.pointer, read.strides) for read in nest.reads]
        lying += [(write.pointer, write.strides) for write in nest.writes]
        for pointer, strides in lying:
            root = operands[pointer].root
            if 1 in strides and 0 not in strides and isinstance(root, Var):
                along[strides.index(1)].append((root, _last(root)))
        if len(along) > 1:
            found.update(axis for axes in along.values() for axis in axes)
    return found


def _last(var: Var) -> int:
    """The axis that a value in C order is contiguous along."""
    return max(number for number, size in enumerate(var.type.shape) if size > 1)


def _movable(graph: Graph, kept: Collection[Var], views: Views) -> set[Var]:
    """Large values that nests and products alone write and read."""
    fixed: set[Atom] = {views.access(atom).root for atom in graph.ends()}
    made: set[Var] = set()
    for node in graph.nodes:
        if _is_arranged(node):
            made.update(node.outputs)
        elif not is_view(node) and node.primitive is not switch:  # branches take what they read as it lies
            fixed.update(views.access(atom).root for atom in node.inputs)
    return {var for var in made if var in kept and var not in fixed and var.type.size >= _LARGE}


def _is_arranged(node: Node) -> bool:
    return is_elementwise(node) or node.primitive in REDUCTIONS or node.primitive is matmul


@dataclass(frozen=True, slots=True)
class _Offer:
    """The layouts and the cost if an axis was the last one of everything that has it."""

    axis: _Axis
    layouts: Layouts
    before: float
    """Cycles of the kernels that read or write values whose order would change."""
    after: float

    @property
    def saved(self) -> float:
        """Cycles that are not taken any more. Offers are compared by them: a large part of a small kernel is little."""
        return self.before - self.after

    @property
    def is_worth_it(self) -> bool:
        """True if the saving is larger than the error of the estimates."""
        return self.after <= _WORTH_IT * self.before and self.saved > 0


class _Offers:
    """Estimates for a graph."""

    def __init__(self, graph: Graph, kernels: Sequence[Kernel], kept: Collection[Var], vector_bits: int) -> None:
        self.graph = graph
        self.kernels = kernels
        self.kept = kept
        self.vector_bits = vector_bits

    def of(self, axis: _Axis, axes: _Axes, movable: Collection[Var], found: Layouts) -> _Offer:
        """The values are arranged beside those that are already."""
        moved = {}
        for var in movable:
            numbers = [number for number in range(len(var.type.shape)) if axes.find((var, number)) == axis]
            if len(numbers) == 1 and numbers[0] != _last(var):
                moved[var] = _with_last(var.type.shape, numbers[0])
        before, after = views_of(self.graph, found), holding_views(self.graph, {**found, **moved})
        layouts = {var: strides for var, strides in moved.items() if after.access(var).strides == strides}
        concerned = [
            kernel
            for kernel in self.kernels
            if any(
                before.access(atom).root in layouts
                for node in nodes_of(kernel)
                for atom in (*node.inputs, *node.outputs)
            )
        ]
        cycles_before, cycles_after = (
            sum(self._cycles(kernel, views) for kernel in concerned) for views in (before, after)
        )
        return _Offer(axis, layouts, cycles_before, cycles_after)

    def _cycles(self, kernel: Kernel, views: Views) -> float:
        if isinstance(kernel, FusedNodes):
            nest, _ = nest_of(kernel, views, self.kept)
            return cycles_of_nest(nest, self.vector_bits)
        if not isinstance(kernel, SingleNode) or kernel.node.primitive is not matmul:
            return 0.0
        a, b, c = (
            StoredArray("", atom.type.shape, views.access(atom).strides, atom.type.dtype)
            for atom in (*kernel.node.inputs, *kernel.node.outputs)
        )
        return cycles_of_product(described(a, b, c).simplified(), self.vector_bits)


def _with_last(shape: Shape, axis: int) -> tuple[int, ...]:
    """Strides of an array that has an axis last, and the others before it in C order."""
    order = [*(number for number in range(len(shape)) if number != axis), axis]
    strides = dict(zip(order, contiguous_strides(tuple(shape[number] for number in order)), strict=True))
    return tuple(strides[number] for number in range(len(shape)))
