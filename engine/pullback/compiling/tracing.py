"""`pb.trace(f)(*args)`: look at the graph of a function."""

from collections.abc import Callable
from typing import Any

from pullback import trees
from pullback.compiling import explanation
from pullback.compiling.specialization import inner_function
from pullback.core.types import type_of
from pullback.ir.graph import Graph
from pullback.ir.printer import format_graph
from pullback.passes.pipeline import Stages, simplify
from pullback.tiers import current_tier, tier
from pullback.traces.recorder import record


class TracedFunction:
    """The graph of a function at some types; its text is the graph on one page."""

    def __init__(self, graph: Graph, names: list[str]) -> None:
        self.graph = graph
        self.names = names
        """The caller's names of the inputs."""

    def __str__(self) -> str:
        return f"{format_graph(self.graph)}\n\n{explanation.arguments(self.graph, self.names)}"

    def explain(self) -> str:
        """The graph as it was recorded and after each pass."""
        stages = Stages()
        simplify(stages.add("recorded", self.graph), stages)
        return "\n\n".join([explanation.arguments(self.graph, self.names), *explanation.passes(stages)])

    __repr__ = __str__


def trace(function: Callable[..., Any]) -> Callable[..., TracedFunction]:
    """Give a function that, called with arguments, gives the graph instead of the value.

    Printed it is the graph on one page; `.explain()` is the graph after each pass.

    >>> print(pb.trace(lambda x: np.sum(x * x))(np.ones(3)))  # doctest: +ELLIPSIS
    graph(a: f8[3]):
      b = mul a a                                    f8[3]        ...
      c = sum b {axes=(0,), keepdims=False}          f8[]         ...
      return c
    <BLANKLINE>
    # arguments
    a  f8[3], 24 bytes  x
    """

    def traced(*args: Any) -> TracedFunction:
        leaves, rebuild = trees.flatten(args)
        with tier(current_tier()):
            graph, _ = record(
                lambda *values: trees.flatten(function(*rebuild(iter(values)))), [type_of(x) for x in leaves], leaves
            )
        return TracedFunction(graph, explanation.names_of_leaves(inner_function(function), args))

    return traced
