"""Native regions of a graph, and the nodes that stay with the interpreter.

A graph that is native throughout is one program. Of any other the native nodes are gathered into *regions*, as few as their
dependencies allow, and each becomes one node of a graph that the interpreter runs. Views belong to their readers, so
that a region reads the memory of what it is given, never a copy made for it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from pullback.backends.llvm.elementary import scalars
from pullback.backends.native import kernel_listing
from pullback.backends.native.entry import in_order
from pullback.backends.native.executable import NativeExecutable
from pullback.backends.native.support import why_not
from pullback.backends.nests.views import is_view
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.errors import DifferentiationError
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.decompositions import share_decompositions
from pullback.passes.lowering import lower
from pullback.passes.systems import factor_systems
from pullback.planning.schedule import flops_of
from pullback.simplification.dead_code import drop_dead

#: Cycles for a vector of results up to which NumPy's loops are as fast as ours; division takes 16, sine 60.
_ARITHMETIC = 20

#: Elements up to which one operation between steps of the interpreter is NumPy's: of arithmetic, where more of them are worth
#: threads; and of elementary functions, where ours take up to 10 ns less for each. `benchmarks/native_regions.py` measures both.
_LARGEST_ALONE = 100_000
_LARGEST_FUNCTION_ALONE = 64


class Region(Primitive):
    """Native nodes as one node of a graph that the interpreter runs."""

    keeps_dtypes = True

    def __init__(self, graph: Graph, number: int) -> None:  # no row of the rule table: it is made for one graph
        self.name = f"native{number}"
        self.graph = graph
        self.native = NativeExecutable(graph)
        self.results = len(graph.outputs)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """The types of the outputs."""
        return tuple(atom.type for atom in self.graph.outputs)

    @property
    def kernels(self) -> int:
        """The number of kernels of its program."""
        return self.native.memory.kernel_count

    @property
    def listing(self) -> str:
        """The kernels in order, and the memory of their results."""
        return kernel_listing.format_kernels(self.native.memory)

    @property
    def kernel_stages(self) -> Sequence[tuple[str, str]]:
        """The kernels after each pass over kernels."""
        return kernel_listing.stages_of_kernels(self.graph, self.native.vector_bits)

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Run into new arrays."""
        outs = [np.empty(type_.shape, type_.dtype) for type_ in self.infer()]
        self.into(outs if self.results > 1 else outs[0], *operands)
        return tuple(outs) if self.results > 1 else outs[0]

    def into(self, out: Any, *operands: Any) -> None:
        """Run into arrays that are there."""
        self._write(*operands, *(out if self.results > 1 else (out,)))

    def in_state(self, places: Mapping[int, int]) -> Callable[..., None]:
        """Run on arrays of which some are in a list, at these places."""
        return self.native.writer(places)

    @cached_property
    def _write(self) -> Callable[..., None]:
        return self.native.writer({})

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """The operations of its nodes."""
        return sum(map(flops_of, self.graph.nodes))

    def pull(self, *_: Any) -> Any:
        """Refuse: gradients are taken before."""
        raise DifferentiationError("a native region has no derivative; differentiate the function it came from")

    def push(self, *_: Any) -> Any:
        """Refuse, as `pull`."""
        return self.pull()


class _ContiguousArray(Primitive):
    """An array in C order, as native programs read it: the operand itself where it is one.

    Arguments of the plan, and arrays that rules make, may be in another order. Put in order once it is so for all
    regions; a region that finds it otherwise goes through Python and copies it on every call.
    """

    name = "in_order"
    aliases_operand = True

    def __init__(self) -> None:  # no row of the rule table: it is met in split graphs only
        pass

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """The operand, or a copy of it."""
        return in_order(operands[0])

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """The type of the operand."""
        return types

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """Zero: nothing is computed."""
        return 0

    def pull(self, *_: Any) -> Any:
        """Refuse: gradients are taken before."""
        raise DifferentiationError("what is put in order for a native region has no derivative")

    def push(self, *_: Any) -> Any:
        """Refuse, as `pull`."""
        return self.pull()


_in_order = _ContiguousArray()


@dataclass(frozen=True, slots=True)
class Split:
    """A graph with regions in it, and the reasons why other nodes are in none."""

    graph: Graph
    regions: tuple[Region, ...]
    fallbacks: tuple[str, ...]
    interpreted: int
    """The number of nodes outside of regions, without views."""


def split(graph: Graph) -> Split:
    """Gather what is native into regions; a graph without guards. Nothing is native where memory is overwritten."""
    reasons = {id(node): why_not(node) for node in graph.nodes}
    if any(node.primitive.effect.writes for node in graph.nodes):
        reasons = {number: reason or "beside what is overwritten" for number, reason in reasons.items()}
    for node in graph.nodes:
        if reasons[id(node)] is None and any(var.type.weak for var in node.outputs):
            reasons[id(node)] = f"{node.primitive.name} of Python numbers beside what is not native"
    phases = _phases(graph, reasons)
    roots = _roots(graph)
    last = max(phases.values(), default=0)
    nodes: list[Node] = []
    regions: list[Region] = []
    for phase in range(last + 1):
        inside = [node for node in graph.nodes if phases.get(id(node)) == phase]
        if phase % 2 or _is_left_to_numpy(inside):
            nodes.extend(inside)
        elif inside:
            region = _region(inside, graph, roots, len(regions))
            regions.append(region.primitive)  # type: ignore[arg-type]  # it is one
            nodes.append(region)
    views = [node for node in graph.nodes if is_view(node)]
    ordered = _scheduled(_given_in_order(nodes, graph), views, graph)
    counted = Counter(reason for node in graph.nodes if (reason := reasons[id(node)]) is not None)
    fallbacks = tuple(reason if count == 1 else f"{reason} ({count} times)" for reason, count in counted.items())
    interpreted = sum(not isinstance(node.primitive, Region) for node in nodes)
    return Split(drop_dead(replace(graph, nodes=tuple(ordered))), tuple(regions), fallbacks, interpreted)


def becomes_native(node: Node) -> bool:
    """True if a node, or all of what it is written out as, is native."""
    inputs = dict.fromkeys(atom for atom in node.inputs if isinstance(atom, Var))
    alone = share_decompositions(Graph(tuple(inputs), (), (node,), node.outputs), native=True)
    written = lower(factor_systems(alone, native=True))
    if any(atom.type.dtype.kind == "c" for atom in (*node.inputs, *node.outputs)) or node.bodies():
        from pullback.passes.complex_parts import inside_loops  # noqa: PLC0415 - what complex programs alone pay

        written = inside_loops(written)
    return not any(map(why_not, written.nodes))


def _phases(graph: Graph, reasons: dict[int, str | None]) -> dict[int, int]:
    """Even numbers for native nodes, odd ones for the others, growing along dependencies; views have none."""
    of_value: dict[Var, int] = {}
    phases: dict[int, int] = {}
    for node in graph.nodes:
        before = max((of_value.get(atom, 0) for atom in node.inputs if isinstance(atom, Var)), default=0)
        if not is_view(node):
            wanted = 0 if reasons[id(node)] is None else 1
            before += before % 2 != wanted
            phases[id(node)] = before
        of_value.update(dict.fromkeys(node.outputs, before))
    return phases


def _is_left_to_numpy(inside: Sequence[Node]) -> bool:
    """True if a region would be one operation that a ufunc does as fast: its call costs 1 µs, theirs half of that."""
    if len(inside) != 1 or not isinstance(getattr(inside[0].primitive, "ufunc", None), np.ufunc):
        return False
    result = inside[0].outputs[0].type
    is_arithmetic = scalars.cost(inside[0].primitive, result.dtype) <= _ARITHMETIC
    return result.size <= (_LARGEST_ALONE if is_arithmetic else _LARGEST_FUNCTION_ALONE)


def _roots(graph: Graph) -> dict[Var, Atom]:
    roots: dict[Var, Atom] = {}
    for node in graph.nodes:
        if is_view(node):
            operand = node.inputs[0]
            roots[node.outputs[0]] = roots.get(operand, operand) if isinstance(operand, Var) else operand
    return roots


def _region(inside: Sequence[Node], graph: Graph, roots: dict[Var, Atom], number: int) -> Node:
    """One node for all of these, with the views that they read."""
    made = {var for node in inside for var in node.outputs}
    needed: set[Atom] = {atom for node in inside for atom in node.inputs}
    views = []
    for node in reversed(graph.nodes):
        if is_view(node) and node.outputs[0] in needed:
            views.append(node)
            needed.update(node.inputs)
    own = {id(node) for node in (*inside, *views)}
    ordered = tuple(node for node in graph.nodes if id(node) in own)
    computed = {var for node in ordered for var in node.outputs}
    inputs = tuple(atom for atom in needed if isinstance(atom, Var) and atom not in computed)
    inputs = tuple(sorted(inputs, key=lambda var: var.index))
    outside = {roots.get(atom, atom) for atom in _read_outside(graph, own) if isinstance(atom, Var)}
    outputs = tuple(var for node in inside for var in node.outputs if var in outside and var in made)
    primitive = Region(Graph(inputs, (), ordered, outputs), number)
    return Node(primitive, inputs, (), outputs, inside[0].source)


def _read_outside(graph: Graph, own: set[int]) -> Iterable[Atom]:
    yield from graph.outputs
    for node in graph.nodes:
        if id(node) not in own:
            yield from node.inputs


def _given_in_order(nodes: Sequence[Node], graph: Graph) -> list[Node]:
    """Nodes with arrays put in order for regions, as soon as they are there: those that come from outside or are made by NumPy."""
    outside = {*graph.inputs, *(capture.var for capture in graph.captures)}
    for node in nodes:
        if node.primitive.into is None:  # else it is written into memory of the plan
            outside.update(node.outputs)
    numbers = count(1 + max((var.index for node in graph.nodes for var in (*outside, *node.outputs)), default=-1))
    ordered: dict[Atom, Var] = {}
    found: list[Node] = []
    for node in nodes:
        if not isinstance(node.primitive, Region):
            found.append(node)
            continue
        for atom in node.inputs:
            if isinstance(atom, Var) and atom.type.shape and atom in outside and atom not in ordered:
                ordered[atom] = Var(next(numbers), atom.type)
                found.append(Node(_in_order, (atom,), (), (ordered[atom],), node.source))
        found.append(replace(node, inputs=tuple(ordered.get(atom, atom) for atom in node.inputs)))
    return found


def _scheduled(nodes: Sequence[Node], views: Sequence[Node], graph: Graph) -> list[Node]:
    """Nodes with views between them, each as soon as what it is of is there."""
    there: set[Atom] = {*graph.inputs, *(capture.var for capture in graph.captures)}
    waiting = list(views)
    ordered: list[Node] = []

    def take_views() -> None:
        nonlocal waiting
        still = []
        for view in waiting:
            if all(not isinstance(atom, Var) or atom in there for atom in view.inputs):
                ordered.append(view)
                there.update(view.outputs)
            else:
                still.append(view)
        waiting = still

    take_views()
    for node in nodes:
        ordered.append(node)
        there.update(node.outputs)
        take_views()
    return ordered
