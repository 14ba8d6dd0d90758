"""Grouping of nodes into kernels.

Elementwise nodes and reductions over the same space are computed by one nest of loops: what one gives the other in it stays
in registers. Everything else is a kernel by itself, and views are no kernel at all.

    matmul a b -> d                     product
    add d c -> e; tanh e -> f;          nest [32, 32]: reads d, c; writes f
      square f -> g; sum g -> h                        sums g over both axes

Kernels stand in an order that is never changed: a node joins a nest only if everything it reads is there before that nest
begins, so no cycle can come about. Of the nests it can join it takes the one that reads what it reads. What reads an array that a
store takes over stands before the store.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from pullback.backends.llvm.elementary import scalars
from pullback.backends.nests.array_selections import PICKS
from pullback.backends.nests.nest import ReductionKind
from pullback.backends.nests.stores import readers_before, taken_over
from pullback.backends.nests.views import Layouts, Views, is_view, views_of
from pullback.core.kinds import Scalar, promotable
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.rules import elementwise, logic, reductions, rounding
from pullback.rules.inplace import copy
from pullback.rules.shapes import astype
from pullback.rules.softmax import quiet_log

#: Reductions that close a nest.
REDUCTIONS: dict[Primitive, ReductionKind] = {
    reductions.sum_: "sum",
    reductions.prod: "prod",
    reductions.max_: "max",
    reductions.min_: "min",
    reductions.any_: "any",
    reductions.all_: "all",
}

#: Nodes whose result is their operand, in another dtype or layout.
COPIES = frozenset({astype, copy})

#: Functions of Python floats that never raise; those that raise for a zero alone.
_HARMLESS_ON_FLOATS = frozenset(
    {elementwise.add, elementwise.sub, elementwise.mul, elementwise.neg, elementwise.absolute}
)
_HARMLESS_ON_INTEGERS = frozenset({logic.bitwise_and, logic.bitwise_or, logic.bitwise_xor, logic.complement})
_QUOTIENTS = frozenset({elementwise.div, rounding.floor_divide, rounding.remainder})

#: Nests that are looked at for a node to join, and the most nodes of one: both bound the time that long programs take.
_NESTS_SEEN = 32
MOST_NODES = 400


@dataclass(slots=True, eq=False)
class FusedNodes:
    """Nodes that are one nest over a space."""

    space: Shape
    nodes: list[Node] = field(default_factory=list)
    values: set[Var] = field(default_factory=set)
    """The values in registers: results of its elementwise nodes."""
    read: set[Atom] = field(default_factory=set)
    """Roots of what it reads from memory."""

    def add(self, node: Node, views: Views) -> None:
        """Take a node in."""
        self.nodes.append(node)
        self.read.update(views.access(atom).root for atom in node.inputs if atom not in self.values)
        if node.primitive not in REDUCTIONS:
            self.values.update(node.outputs)


@dataclass(frozen=True, slots=True, eq=False)
class SingleNode:
    """A node that is a kernel by itself."""

    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class ProductWithEpilogue:
    """A product and the nest over its result, block by block; the result is never stored as a whole."""

    product: Node
    nest: FusedNodes


Kernel: TypeAlias = FusedNodes | SingleNode | ProductWithEpilogue


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels of a graph in order, and the layouts of its values."""

    kernels: tuple[Kernel, ...]
    views: Views
    taken: Mapping[Var, Node] = field(default_factory=dict)
    """Stores by the array that they overwrite; no kernel that reads the array runs after its store."""
    layouts: Layouts = field(default_factory=dict)
    """Layouts of the values that are not in C order."""

    def can_wait(self, kernel: Kernel, between: Sequence[Kernel]) -> bool:
        """True if no store in the kernels behind one overwrites what that one reads."""
        if not self.taken:
            return True
        roots = {self.views.access(atom).root for node in nodes_of(kernel) for atom in node.inputs}
        stores = {self.taken[root] for root in roots if isinstance(root, Var) and root in self.taken}
        return not any(isinstance(other, SingleNode) and other.node in stores for other in between)


def is_elementwise(node: Node) -> bool:
    """True if a node computes every element from the elements at the same place."""
    return isinstance(node.primitive, Scalar) or node.primitive in COPIES or node.primitive is quiet_log


def space_of(node: Node) -> Shape | None:
    """The space that a node runs over, if it belongs into a nest."""
    if node.primitive in REDUCTIONS:
        return node.inputs[0].type.shape
    return node.outputs[0].type.shape if is_elementwise(node) else None


def read_elsewhere(node: Node) -> tuple[Atom, ...]:
    """The operands that a node of a nest reads at other places than its own, or to know where: they are in memory before it begins."""
    return node.inputs if node.primitive in PICKS else ()


def reduced_axes(node: Node) -> frozenset[int]:
    """The axes of its operand that a reduction takes."""
    params = dict(node.params)
    return frozenset(params["axes"] if "axes" in params else (params["axis"],))


def loop_dtypes(node: Node) -> tuple[np.dtype[np.generic], ...]:
    """The dtype in which an elementwise node takes each operand."""
    operands = tuple([(atom.type.dtype, atom.type.weak) for atom in node.inputs])
    return _loop_dtypes(node.primitive, operands, node.outputs[0].type.dtype)


@lru_cache(maxsize=4096)
def _loop_dtypes(
    primitive: Primitive, given: tuple[tuple[np.dtype[np.generic], bool], ...], result: np.dtype[np.generic]
) -> tuple[np.dtype[np.generic], ...]:
    ufunc = getattr(primitive, "ufunc", None)
    if primitive is elementwise.where:
        return (np.dtype(bool), result, result)
    if isinstance(ufunc, np.ufunc):
        operands = tuple(promotable(ArrayType((), dtype, weak)) for dtype, weak in given)
        if all(isinstance(operand, type) for operand in operands):  # Python numbers alone
            operands = tuple(dtype for dtype, _ in given)
        resolved = ufunc.resolve_dtypes((*operands, *([None] * ufunc.nout)))
        return tuple(np.dtype(dtype) for dtype in resolved[: ufunc.nin])
    return (result,) * len(given)


def why_not_fused(node: Node) -> str | None:
    """The reason why a node of a nest cannot be computed natively; None if it can."""
    if node.primitive in REDUCTIONS or node.primitive in COPIES:
        return None
    result = node.outputs[0].type
    if result.weak and not is_safe_on_python_numbers(node):
        return f"{node.primitive.name} of Python numbers, which may raise or outgrow 64 bits"
    dtypes = loop_dtypes(node)
    if any(map(_may_not_fit, node.inputs, dtypes)):
        return f"{node.primitive.name} of a Python integer that {result.dtype} may not hold"
    return scalars.why_not(node.primitive, dtypes, result.dtype)


def _may_not_fit(atom: Atom, dtype: np.dtype[np.generic]) -> bool:
    """True if a Python integer may be too large for the dtype it is taken in, which NumPy raises an error for."""
    if not atom.type.weak or atom.type.dtype.kind != "i" or dtype.kind != "i":
        return False
    if isinstance(atom, Literal):
        most = 2 ** (8 * dtype.itemsize - 1)
        return not -most <= atom.value < most
    return dtype.itemsize < atom.type.dtype.itemsize


def is_safe_on_python_numbers(node: Node) -> bool:
    """Floats never raise where they are added, multiplied and divided by what is not zero; integers grow, and powers raise."""
    if node.outputs[0].type.dtype.kind == "b" or node.primitive in _HARMLESS_ON_INTEGERS:
        return True
    if node.outputs[0].type.dtype.kind != "f":
        return False
    divisor = node.inputs[-1]
    return node.primitive in _HARMLESS_ON_FLOATS or (
        node.primitive in _QUOTIENTS and isinstance(divisor, Literal) and bool(divisor.value)
    )


def fuse(
    graph: Graph,
    layouts: Layouts | None = None,
    belongs: Callable[[Node], bool] = lambda node: node.primitive not in PICKS,
) -> Kernels:
    """Group the nodes of a graph into nests; of those with a space, and of those that read by positions, `belongs` keeps some out."""
    views = views_of(graph, layouts or {})
    kernels: list[Kernel] = []
    made_by: dict[Var, int] = {}  # where in the order a value of memory is written
    nests: list[int] = []
    taken = taken_over(graph, views)
    for node in _as_late_as_possible(graph, readers_before(graph, taken, views)):
        if is_view(node):
            continue
        space = _space_in_nest(node) if belongs(node) else None
        number = None if space is None else _nest_for(node, space, nests, kernels, made_by, views)
        if number is None:
            number = len(kernels)
            if space is None:
                kernels.append(SingleNode(node))
            else:
                kernels.append(FusedNodes(space))
                nests.append(number)
        kernel = kernels[number]
        if isinstance(kernel, FusedNodes):
            kernel.add(node, views)
        made_by.update(dict.fromkeys(node.outputs, number))
    return Kernels(tuple(kernels), views, taken)


def _space_in_nest(node: Node) -> Shape | None:
    return node.outputs[0].type.shape if node.primitive in PICKS else space_of(node)


def _as_late_as_possible(graph: Graph, before: Mapping[Node, Sequence[Node]]) -> list[Node]:
    """The nodes, each right before the first that needs it; a store also behind the nodes that read what it writes over.

    A nest stands where its first node does, and what joins it later has to be there by then: so the later it begins, the
    more can join. There is such an order, as that of the graph is one.
    """
    makers = {var: node for node in graph.nodes for var in node.outputs}
    ordered: dict[Node, None] = {}
    waiting = [makers[atom] for atom in reversed(graph.outputs) if isinstance(atom, Var) and atom in makers]
    opened: set[Node] = set()
    while waiting:
        node = waiting[-1]
        if node in ordered:
            waiting.pop()
        elif node in opened:  # all that it reads is there now
            ordered[node] = None
            waiting.pop()
        else:
            opened.add(node)
            waiting.extend(before.get(node, ()))
            waiting.extend(makers[atom] for atom in reversed(node.inputs) if isinstance(atom, Var) and atom in makers)
    return list(ordered)


def _nest_for(
    node: Node, space: Shape, nests: Sequence[int], kernels: Sequence[Kernel], made_by: dict[Var, int], views: Views
) -> int | None:
    """The nest that a node joins: the latest that has one of its operands in registers, else in memory."""
    operands, elsewhere = {atom for atom in node.inputs if isinstance(atom, Var)}, read_elsewhere(node)
    roots = {atom: views.access(atom).root for atom in operands}
    made = {atom: made_by.get(root, -1) for atom, root in roots.items() if isinstance(root, Var)}
    latest = max(made.values(), default=-1)
    read = set(roots.values())
    is_number = math.prod(space) <= 1
    reading: int | None = None
    for number in reversed(nests[-_NESTS_SEEN:]):
        nest = kernels[number]
        if not isinstance(nest, FusedNodes) or nest.space != space or len(nest.nodes) >= MOST_NODES:
            continue
        # Everything that a nest reads is in registers, or in memory before it begins.
        if latest >= number and any(
            at >= number and (atom not in nest.values or atom in elsewhere) for atom, at in made.items()
        ):
            continue
        if not nest.values.isdisjoint(operands):
            return number
        if reading is None and (is_number or not nest.read.isdisjoint(read)):  # of numbers: one kernel for several
            reading = number
    return reading


def kept_values(found: Kernels, graph: Graph) -> set[Var]:
    """The values that are in memory: read by another kernel, through a view, part of a joined array, or returned."""
    kept: set[Var] = set()
    for kernel in found.kernels:
        nest = nest_in(kernel)
        inside = nest.values if nest is not None else set()
        passing = set(kernel.product.outputs) if isinstance(kernel, ProductWithEpilogue) else set()
        for node in nodes_of(kernel):
            roots = (found.views.access(atom).root for atom in node.inputs if atom not in inside)
            kept.update(root for root in roots if isinstance(root, Var) and root not in passing)
            if node.primitive in REDUCTIONS or isinstance(kernel, SingleNode):
                kept.update(node.outputs)
            kept.update(var for var in node.outputs if found.views.access(var).root is not var)
    kept.update(root for atom in graph.outputs if isinstance(root := found.views.access(atom).root, Var))
    return kept


def nodes_of(kernel: Kernel) -> Iterator[Node]:
    """The nodes of a kernel in order."""
    if isinstance(kernel, ProductWithEpilogue):
        yield kernel.product
        yield from kernel.nest.nodes
    else:
        yield from kernel.nodes if isinstance(kernel, FusedNodes) else (kernel.node,)


def nest_in(kernel: Kernel) -> FusedNodes | None:
    """The nest that a kernel is or ends with."""
    if isinstance(kernel, ProductWithEpilogue):
        return kernel.nest
    return kernel if isinstance(kernel, FusedNodes) else None
