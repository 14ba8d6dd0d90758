"""The order of the passes, with the type check before and after each."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pullback.ir.checker import check_graph
from pullback.ir.graph import Graph, Node
from pullback.passes.algebra import simplify_algebra
from pullback.passes.common import merge_common
from pullback.passes.dead_code import drop_dead
from pullback.passes.decompositions import drop_vectors, share_decompositions
from pullback.passes.layouts import copy_for_layouts
from pullback.passes.loops.carries import drop_dead_carries
from pullback.passes.loops.hoisting import hoist_invariants
from pullback.passes.loops.packing import pack_before_loops
from pullback.passes.loops.panels import lay_in_panels
from pullback.passes.loops.products import split_products
from pullback.passes.loops.recomputing import recompute_saved
from pullback.passes.loops.shifting import shift_carries
from pullback.passes.loops.sums import sum_after_loops
from pullback.passes.loops.taking_in import take_in
from pullback.passes.lowering import lower
from pullback.passes.masks import mask_before_spreading
from pullback.passes.outer_products import join_outer_products
from pullback.passes.parts import join_parts
from pullback.passes.slices import slice_operands
from pullback.passes.stacked_products import sum_within_products
from pullback.passes.store_order import order_stores
from pullback.passes.stores import forward_stores
from pullback.passes.systems import factor_systems
from pullback.passes.turning import turn_products
from pullback.passes.unwriting import drop_undone_writes
from pullback.passes.wholes import reshape_wholes
from pullback.rules.pooling import max_spread

Pass = tuple[str, Callable[[Graph], Graph]]


def simplify_bodies(graph: Graph) -> Graph:
    """The same passes inside loops and branches, innermost first."""

    def simplified(body: Graph) -> Graph:
        for _, run_pass in _passes_for(body):
            body = check_graph(run_pass(body))
        return body

    return replace(graph, nodes=tuple(node.with_bodies(simplified) for node in graph.nodes))


SIMPLIFYING: tuple[Pass, ...] = (
    ("algebra", simplify_algebra),
    ("common subexpressions", merge_common),
    ("dead code", drop_dead),
)
MASKS: tuple[Pass, ...] = (("masks", mask_before_spreading), ("masks: dead code", drop_dead))
LOOPS: tuple[Pass, ...] = (
    ("bodies", simplify_bodies),
    ("loops: carries", drop_dead_carries),
    ("loops: hoisting", hoist_invariants),
    ("loops: sums", sum_after_loops),
    ("loops: products", split_products),
    ("loops: common subexpressions", merge_common),
    ("loops: dead code", drop_dead),
    ("loops: dead carries", drop_dead_carries),
)


def _passes_for(graph: Graph) -> tuple[Pass, ...]:
    # Where memory is overwritten, two names for one value, or one value read at two times, are not the same thing.
    if any(node.primitive.effect.writes for node in graph.nodes):
        return SIMPLIFYING[-1:]
    masks = MASKS if any(node.primitive is max_spread for node in graph.nodes) else ()
    loops = LOOPS if any(node.bodies() for node in graph.nodes) else ()
    return (*SIMPLIFYING, *masks, *loops)


@dataclass
class Stages:
    """The graph after each pass, for `plan.explain()`."""

    graphs: list[tuple[str, Graph]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """What the caller calls the inputs of the first graph."""
    _typed: set[Node] = field(default_factory=set)
    """Nodes that were checked: most passes change a few."""

    def add(self, name: str, graph: Graph) -> Graph:
        """Note a checked graph."""
        self.graphs.append((name, check_graph(graph, self._typed)))
        return graph


def simplify(graph: Graph, stages: Stages, *, lowered: bool = False, looping: bool = False) -> Graph:
    """Run the simplifying passes; `lowered`, with fused rules written out, for plans that keep all memory.

    `looping`: for a backend that compiles loops, and for which how operands of products lie is worth a copy before them.
    """
    if any(node.primitive.effect.writes for node in graph.nodes):
        graph = stages.add("undone writes", drop_undone_writes(graph))
    if not any(node.primitive.effect.writes for node in graph.nodes):
        decomposed = share_decompositions(graph, native=lowered and looping)
        graph = graph if decomposed is graph else stages.add("decompositions", decomposed)
        graph = stages.add("systems", factor_systems(graph, native=lowered and looping))
    if lowered:
        graph = stages.add("lowered", lower(graph))
        if not any(node.primitive.effect.writes for node in graph.nodes):
            graph = stages.add("parts", join_parts(graph))
            whole = reshape_wholes(graph)
            graph = graph if whole is graph else stages.add("wholes", whole)
            forwarded = forward_stores(graph)
            graph = graph if forwarded is graph else stages.add("stores", forwarded)
    for name, run_pass in _passes_for(graph):
        graph = stages.add(name, run_pass(graph))
    valued = drop_vectors(graph)
    graph = graph if valued is graph else stages.add("decompositions: values alone", valued)
    if lowered and not any(node.primitive.effect.writes for node in graph.nodes):
        if looping:
            graph = stages.add("outer products", join_outer_products(graph))
        stacked = sum_within_products(graph)
        graph = graph if stacked is graph else stages.add("stacked products", stacked)
        graph = stages.add("products", turn_products(graph))
    if lowered and looping and any(node.bodies() for node in graph.nodes):
        graph = stages.add("loops: recomputing", recompute_saved(graph))
        graph = stages.add("loops: shifting", shift_carries(graph))
        graph = stages.add("loops: taking in", slice_operands(take_in(graph)))
        graph = stages.add("loops: panels", lay_in_panels(graph))
    if lowered and any(node.bodies() for node in graph.nodes):
        graph = stages.add("loops: packing", pack_before_loops(graph))
    return _arranged(graph, stages) if lowered else graph


def _arranged(graph: Graph, stages: Stages) -> Graph:
    graph = stages.add("layouts", copy_for_layouts(graph))
    ordered = order_stores(graph)
    return graph if ordered is graph else stages.add("order of stores", ordered)
