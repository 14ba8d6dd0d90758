"""The order of the passes, with the type check before and after each."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pullback.ir.checker import check_graph
from pullback.ir.graph import Graph
from pullback.passes.algebra import simplify_algebra
from pullback.passes.common import merge_common
from pullback.passes.dead_code import drop_dead
from pullback.passes.lowering import lower


def simplify_bodies(graph: Graph) -> Graph:
    """The same passes inside loops and branches, innermost first."""

    def simplified(body: Graph) -> Graph:
        body = simplify_bodies(body)
        for _, run_pass in SIMPLIFYING[1:]:
            body = check_graph(run_pass(body))
        return body

    return replace(graph, nodes=tuple(node.with_bodies(simplified) for node in graph.nodes))


SIMPLIFYING: tuple[tuple[str, Callable[[Graph], Graph]], ...] = (
    ("bodies", simplify_bodies),
    ("algebra", simplify_algebra),
    ("common subexpressions", merge_common),
    ("dead code", drop_dead),
)


@dataclass
class Stages:
    """The graph after each pass, for `plan.explain()`."""

    graphs: list[tuple[str, Graph]] = field(default_factory=list)

    def add(self, name: str, graph: Graph) -> Graph:
        """Note a checked graph."""
        self.graphs.append((name, check_graph(graph)))
        return graph


def simplify(graph: Graph, stages: Stages, *, lowered: bool = False) -> Graph:
    """Run the simplifying passes; `lowered`, with fused rules written out, for plans that keep all memory."""
    if lowered:
        graph = stages.add("lowered", lower(graph))
    # Where memory is overwritten, two names for one value, or one value read at two times, are not the same thing.
    writes = any(node.primitive.effect.writes for node in graph.nodes)
    for name, run_pass in SIMPLIFYING[-1:] if writes else SIMPLIFYING:
        if run_pass is simplify_bodies and not any(node.bodies() for node in graph.nodes):
            continue
        graph = stages.add(name, run_pass(graph))
    return graph
