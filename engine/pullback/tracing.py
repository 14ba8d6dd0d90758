"""`pb.trace(f)(*args)`: look at the graph of a function."""

from collections.abc import Callable
from typing import Any

from pullback import trees
from pullback.ir.graph import Graph
from pullback.ir.printer import format_graph
from pullback.ir.types import type_of
from pullback.recorder import record
from pullback.tiers import current_tier, tier


class TracedFunction:
    """The graph of a function at some types; its text is the graph on one page."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __str__(self) -> str:
        return format_graph(self.graph)

    __repr__ = __str__


def trace(function: Callable[..., Any]) -> Callable[..., TracedFunction]:
    """Give a function that, called with arguments, gives the graph instead of the value."""

    def traced(*args: Any) -> TracedFunction:
        leaves, rebuild = trees.flatten(args)
        with tier(current_tier()):
            graph, _ = record(
                lambda *values: trees.flatten(function(*rebuild(iter(values)))), [type_of(x) for x in leaves]
            )
        return TracedFunction(graph)

    return traced
