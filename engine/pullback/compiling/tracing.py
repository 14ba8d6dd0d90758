"""`pb.trace(f)(*args)`: look at the graph of a function."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from pullback import trees
from pullback.ir.graph import Graph
from pullback.ir.printer import format_graph
from pullback.ir.types import type_of
from pullback.passes.pipeline import Stages, simplify
from pullback.tiers import current_tier, tier
from pullback.traces.recorder import record


class TracedFunction:
    """The graph of a function at some types; its text is the graph on one page."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __str__(self) -> str:
        return format_graph(self.graph)

    def explain(self) -> str:
        """The graph as it was recorded and after each pass that changed it."""
        stages = Stages()
        simplify(stages.add("recorded", self.graph), stages)
        texts = [(name, format_graph(graph)) for name, graph in stages.graphs]
        changed = [texts[0], *(now for before, now in pairwise(texts) if now[1] != before[1])]
        return "\n\n".join(f"# {name}\n{text}" for name, text in changed)

    __repr__ = __str__


def trace(function: Callable[..., Any]) -> Callable[..., TracedFunction]:
    """Give a function that, called with arguments, gives the graph instead of the value.

    print(pb.trace(f)(x))  # and .explain() for the graph after each pass
    """

    def traced(*args: Any) -> TracedFunction:
        leaves, rebuild = trees.flatten(args)
        with tier(current_tier()):
            graph, _ = record(
                lambda *values: trees.flatten(function(*rebuild(iter(values)))), [type_of(x) for x in leaves], leaves
            )
        return TracedFunction(graph)

    return traced
