"""Parting a body of values and cotangents into what runs forward and what runs back.

What depends on no seed and no sum runs forward; the rest runs back and reads some of what ran forward. Those values are
saved, step by step, and nothing else is, except that

- what the loop was given, constants and xs, is there anyway,
- what depends on constants alone is computed once, outside the loop,
- a cheap elementwise function of what is saved is computed again rather than saved beside it, and
- a view that is no smaller than what it is a view of is taken again.

For a body that is checkpointed nothing is saved but what went in.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from pullback.control.transformed import Transformed
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.kinds import Scalar
from pullback.passes.algebra import simplify_algebra
from pullback.passes.common import merge_common
from pullback.passes.dead_code import drop_dead

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
class Parts:
    """A body of values and cotangents, and which of its values are saved for the way back."""

    whole: Transformed
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


def simplified(graph: Graph) -> Graph:
    """The passes that keep the names of values, so that two recordings of one body can be told to be the same."""
    return drop_dead(merge_common(simplify_algebra(graph)))


def part(whole: Transformed, constant: Collection[Var], given: Collection[Var], *, recompute: bool = False) -> Parts:
    """Decide what is saved. `constant` inputs are the same in every step; `given` ones are at hand on the way back."""
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
        return Parts(whole, graph, tuple(var for var in whole.inputs if var not in at_hand), ())
    outside = [var for var in wanted if var in invariant and var in makers]
    saved = dict.fromkeys(var for var in wanted if var not in at_hand and var not in invariant)
    order = {var: position for position, node in enumerate(graph.nodes) for var in node.outputs}
    for var in sorted(saved, key=lambda var: order.get(var, -1), reverse=True):
        node = makers.get(var)
        if node is None or len(node.outputs) > 1:
            continue
        operands = [atom for atom in node.inputs if isinstance(atom, Var) and atom not in at_hand]
        if node.primitive.aliases_operand and (not operands or operands[0].type.nbytes <= var.type.nbytes):
            del saved[var]
            saved.update(dict.fromkeys(operands))
        elif _is_cheap(node) and all(operand in saved or operand in invariant for operand in operands):
            del saved[var]
            outside += [operand for operand in operands if operand in invariant]
    return Parts(whole, graph, tuple(saved), tuple(dict.fromkeys(outside)))


def _is_cheap(node: Node) -> bool:
    return isinstance(node.primitive, Scalar) and node.primitive.name in CHEAP


def _tainted(graph: Graph, whole: Transformed) -> set[Var]:
    """Everything that depends on a seed or a sum."""
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
