"""The type check that runs behind every pass where `PULLBACK_CHECK=1` is set, as in all tests.

It takes up to a tenth of the time of a compilation (`benchmarks/compile_time.py`), which a released compiler need not spend.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pullback.errors import GraphError
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.ir.printer import format_graph


def is_checking() -> bool:
    """True where graphs and kernels are checked behind every pass."""
    return os.environ.get("PULLBACK_CHECK", "").strip() not in ("", "0")


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the name of a pass before the errors of the check behind it."""
    try:
        yield
    except GraphError as error:
        raise GraphError(f"after the pass {name}: {error}") from error


def check_graph(graph: Graph, typed: set[Node] | None = None) -> Graph:
    """Return the graph if it is well formed: every value defined once, before its use, with the type its rule gives.

    Nodes in `typed` have been found to give the types that they say; those that are now are added to it.
    """
    typed = set() if typed is None else typed
    defined: set[Var] = set()

    def define(var: Var) -> None:
        if var in defined:
            raise GraphError(f"value {var.index} is defined twice in\n{format_graph(graph)}")
        defined.add(var)

    def use(atoms: Sequence[Atom], where: str) -> None:
        for atom in atoms:
            if isinstance(atom, Var) and atom not in defined:
                raise GraphError(f"value {atom.index} is used by {where} before it is defined")

    for var in (*graph.inputs, *(capture.var for capture in graph.captures)):
        define(var)
    for node in graph.nodes:
        use(node.inputs, node.primitive.name)
        if node not in typed:
            typed.add(node)
            check_types(node)
        for var in node.outputs:
            define(var)
    use(graph.ends(), "return or a guard")
    return graph


def check_types(node: Node) -> None:
    """Raise unless a node gives the types that its rule gives."""
    for _, body in node.bodies():
        if body.captures:
            raise GraphError(f"{node.primitive.name} at {node.source} has a body with captures; bodies are closed")
        check_graph(body)
    inferred = node.primitive.infer(*(atom.type for atom in node.inputs), **dict(node.params))
    for var, expected in zip(node.outputs, inferred, strict=True):
        if var.type != expected:
            raise GraphError(
                f"{node.primitive.name} at {node.source} is declared to give {var.type}, its rule gives {expected}"
            )
