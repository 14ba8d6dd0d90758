"""Passes over the kernels of a graph, one after the other, checked as graphs are."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from pullback.backends.nests.fusion import Kernels, nodes_of
from pullback.backends.nests.views import Views, is_view
from pullback.errors import GraphError
from pullback.ir.checker import check_types, is_checking, naming
from pullback.ir.graph import Atom, Graph, Var


def run_passes(
    graph: Graph, passes: Iterable[tuple[str, Callable[[Kernels], Kernels]]]
) -> Iterator[tuple[str, Kernels]]:
    """The kernels of a graph after each pass; the first pass is given none."""
    checks, kernels = is_checking(), Kernels((), Views({}))
    for name, run in passes:
        kernels = run(kernels)
        if checks:
            with naming(name):
                check_kernels(graph, kernels)
        yield name, kernels


def check_kernels(graph: Graph, found: Kernels) -> None:
    """Raise unless each kernel reads what the graph is given or one before it makes, types are right, and one makes what is returned."""
    there = {*graph.inputs, *(capture.var for capture in graph.captures)}
    checked = {*graph.nodes}  # behind the last pass over the graph
    root_of: dict[Var, Atom] = {}
    for node in graph.nodes:
        if is_view(node):
            operand = node.inputs[0]
            root_of[node.outputs[0]] = root_of.get(operand, operand) if isinstance(operand, Var) else operand

    def use(atoms: Sequence[Atom], where: str) -> None:
        roots = (root_of.get(atom, atom) for atom in atoms if isinstance(atom, Var))
        if any(isinstance(root, Var) and root not in there for root in roots):
            raise GraphError(f"{where} reads a value that no kernel before it makes")

    for node in (node for kernel in found.kernels for node in nodes_of(kernel)):
        use(node.inputs, f"the kernel of {node.primitive.name} at {node.source}")
        if node not in checked:
            check_types(node)
        if not there.isdisjoint(node.outputs):
            raise GraphError(f"{node.primitive.name} at {node.source} is in two kernels")
        there.update(node.outputs)
    use(graph.outputs, "return")
