"""Partition of a body of values and cotangents into what runs forward and what runs back.

What depends on no seed and no sum runs forward; the rest runs back and reads some of what ran forward. Those values are
saved, step by step, and nothing else is, except that

- what the loop was given, constants and xs, is there anyway,
- what depends on constants alone is computed once, outside the loop,
- a cheap elementwise function of what is saved, or collected as a result, is computed again rather than saved, and
- a view that is no smaller than what it is a view of is taken again.

For a body that is checkpointed nothing is saved but what went in.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from pullback.control.body_transforms import TransformedGraph
from pullback.core.kinds import Scalar
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.simplification.dead_code import drop_dead
from pullback.simplification.order import simplified

#: Elementwise functions that cost no more than reading their operands.
CHEAP = frozenset(
    [
        "add",
        "sub",
        "mul",
        "neg",
        "square",
        "absolute",
        "sign",
        "maximum",
        "minimum",
        "where",
        "with_nan_of",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "real",
        "imag",
        "conj",
    ]
)


@dataclass(frozen=True, slots=True)
class BodyPartition:
    """A body of values and cotangents, and its values that are saved for the backward pass."""

    whole: TransformedGraph
    graph: Graph  # that of `whole`, simplified
    saved: tuple[Var, ...]
    invariant: tuple[Var, ...]  # depend on constants alone

    def forward(self) -> list[Node]:
        """The nodes that no seed is needed for."""
        tainted = _tainted(self.graph, self.whole)
        return [node for node in self.graph.nodes if not tainted.intersection(node.outputs)]

    def backward(self, outputs: Iterable[Atom]) -> list[Node]:
        """The nodes that compute some outputs from what is saved, invariant, given or seeded."""
        there = {
            *self.saved,
            *self.invariant,
            *self.whole.inputs,
            *self.whole.captured,
            *self.whole.extra_inputs.values(),
        }
        wanted = {atom for atom in outputs if isinstance(atom, Var)} - there
        nodes = []
        for node in reversed(self.graph.nodes):
            if wanted.intersection(node.outputs):
                nodes.append(node)
                wanted -= set(node.outputs)
                wanted |= {atom for atom in node.inputs if isinstance(atom, Var)} - there
        return nodes[::-1]


def partition_body(
    whole: TransformedGraph,
    constant: Collection[Var],
    given: Collection[Var],
    stacked: Collection[int] = (),
    *,
    recompute: bool = False,
) -> BodyPartition:
    """Choose the saved values. `constant` inputs are the same in every step; the backward pass has the `given` ones.

    Outputs that are `stacked` for another reader can be read from there.
    """
    graph = simplified(whole.graph)
    tainted = _tainted(graph, whole)
    makers = {var: node for node in graph.nodes for var in node.outputs}
    invariant = _depending_only_on({*constant, *whole.captured}, graph)
    at_hand = {*given, *constant, *whole.captured}
    cotangents = [atom for atom in graph.outputs[len(whole.outputs) :] if isinstance(atom, Var)]
    read = [
        atom
        for node in graph.nodes
        if tainted.intersection(node.outputs)
        for atom in node.inputs
        if isinstance(atom, Var) and atom not in tainted
    ]
    wanted = dict.fromkeys([*read, *(atom for atom in cotangents if atom not in tainted)])
    if recompute:
        return BodyPartition(whole, graph, tuple(var for var in whole.inputs if var not in at_hand), ())
    saving = _Saving(
        makers,
        at_hand,
        invariant,
        free={atom for number in stacked if isinstance(atom := graph.outputs[number], Var)},
        saved=dict.fromkeys(var for var in wanted if var not in at_hand and var not in invariant),
        outside=dict.fromkeys(var for var in wanted if var in invariant and var in makers),
    )
    for var in reversed(list(makers)):  # what is saved instead of a value is made before it, and may be spared as well
        if var in saving.saved:
            saving.spare(var)
    return BodyPartition(whole, graph, tuple(saving.saved), tuple(saving.outside))


@dataclass
class _Saving:
    """The set of values to save, while it is being made smaller."""

    makers: dict[Var, Node]
    at_hand: Collection[Var]
    invariant: Collection[Var]
    free: Collection[Var]  # stacked in any case
    saved: dict[Var, None]
    outside: dict[Var, None]

    def spare(self, var: Var) -> None:
        """Do not save a value that can be had from others, if it can."""
        node = self.makers.get(var)
        if node is None or len(node.outputs) > 1 or var in self.free:
            return
        del self.saved[var]
        instead = self.sources(node)
        if instead is None and _is_view_no_smaller(node):
            instead = [atom for atom in node.inputs[:1] if isinstance(atom, Var) and atom not in self.at_hand]
        if instead is None:
            self.saved[var] = None
            return
        self.outside.update(dict.fromkeys(var for var in instead if var in self.invariant and var in self.makers))
        self.saved.update(dict.fromkeys(var for var in instead if var not in self.invariant))

    def sources(self, node: Node) -> list[Var] | None:
        """The saved, stacked and invariant values that a node can be computed from cheaply; None if it cannot."""
        if not _is_cheap(node):
            return None
        found: list[Var] = []
        for atom in node.inputs:
            if not isinstance(atom, Var) or atom in self.at_hand:
                continue
            if atom in self.invariant or atom in self.saved or atom in self.free:
                found.append(atom)
                continue
            maker = self.makers.get(atom)
            own = None if maker is None else self.sources(maker)
            if own is None:
                return None
            found += own
        return found


def _is_view_no_smaller(node: Node) -> bool:
    return node.primitive.aliases_operand and node.inputs[0].type.nbytes <= node.outputs[0].type.nbytes


def _is_cheap(node: Node) -> bool:
    return isinstance(node.primitive, Scalar) and node.primitive.name in CHEAP


def _tainted(graph: Graph, whole: TransformedGraph) -> set[Var]:
    """The values that depend on a seed or a sum."""
    tainted = set(whole.extra_inputs.values())
    for node in graph.nodes:
        if tainted.intersection(node.inputs):
            tainted.update(node.outputs)
    return tainted


def _depending_only_on(roots: Collection[Var], graph: Graph) -> set[Var]:
    inside = set(roots)
    for node in graph.nodes:
        if all(not isinstance(atom, Var) or atom in inside for atom in node.inputs):
            inside.update(node.outputs)
    return inside


def closed(graph: Graph, inputs: Iterable[Var], nodes: Iterable[Node], outputs: Iterable[Atom]) -> Graph:
    """A graph of some of the nodes of another."""
    return drop_dead(replace(graph, inputs=tuple(inputs), captures=(), nodes=tuple(nodes), outputs=tuple(outputs)))
