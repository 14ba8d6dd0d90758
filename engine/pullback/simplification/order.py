"""The order of the rewritings of this folder, for graphs in `passes/pipeline.py`, and for bodies that are taken apart."""

from typing import Final

from pullback.ir.graph import Graph
from pullback.simplification.algebra import simplify_algebra
from pullback.simplification.common_subexpressions import merge_common
from pullback.simplification.dead_code import drop_dead

#: Of graphs that write to no memory; dead code is dropped behind them.
REWRITINGS: Final = (("algebra", simplify_algebra), ("common subexpressions", merge_common))


def simplified(graph: Graph) -> Graph:
    """The graph behind all of them. Names of values stay, so that two recordings of one body can be recognised as the same."""
    for _, rewrite in REWRITINGS:
        graph = rewrite(graph)
    return drop_dead(graph)
