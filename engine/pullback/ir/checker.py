"""The type check that runs before and after every pass."""

from pullback.errors import GraphError
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.ir.printer import format_graph


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

    def use(atom: Atom, where: str) -> None:
        if not isinstance(atom, Literal) and atom not in defined:
            raise GraphError(f"value {atom.index} is used by {where} before it is defined")

    for var in (*graph.inputs, *(capture.var for capture in graph.captures)):
        define(var)
    for node in graph.nodes:
        for atom in node.inputs:
            use(atom, node.primitive.name)
        _check_types(node, typed)
        for var in node.outputs:
            define(var)
    for atom in (*graph.outputs, *(guard.atom for guard in graph.guards)):
        use(atom, "return or a guard")
    return graph


def _check_types(node: Node, typed: set[Node]) -> None:
    if node in typed:
        return
    typed.add(node)
    for _, body in node.bodies():
        if body.captures:
            raise GraphError(f"{node.primitive.name} at {node.source} has a body with captures; bodies are closed")
        check_graph(body)
    inferred = node.primitive.infer(*(atom.type for atom in node.inputs), **dict(node.params))
    for var, expected in zip(node.outputs, inferred, strict=True):
        if var.type != expected:
            raise GraphError(
                f"{node.primitive.name} at {node.source} is said to give {var.type}, its rule gives {expected}"
            )
