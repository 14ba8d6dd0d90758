"""The kernels of a graph, by the passes over kernels in the order of `passes.pipeline`, checked as graphs are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

from pullback.backends.native.arranging import arranged
from pullback.backends.native.epilogues import with_epilogues
from pullback.backends.nests.fusing import Kernels, fuse, kept_values, nodes_of
from pullback.backends.nests.joins_in_place import joined_in_place
from pullback.backends.nests.merging import merged
from pullback.backends.nests.sinking import sunk
from pullback.backends.nests.views import Layouts, is_view, views_of
from pullback.dataclass import dataclass
from pullback.errors import GraphError
from pullback.ir.checker import is_checking
from pullback.ir.graph import Atom, Graph, Var
from pullback.passes.pipeline import KERNEL_PASSES


@dataclass(frozen=True, slots=True)
class Grouping:
    """The input of the passes over kernels: a graph and how it is given."""

    graph: Graph
    vector_bits: int
    layouts: Layouts = field(default_factory=dict)
    """Strides of inputs that are not in C order."""
    is_body: bool = False
    """True of a step of a loop or a branch. How much memory it takes does not depend on layouts, so products have no epilogue."""

    def stages(self) -> Iterator[tuple[str, Kernels]]:
        """The kernels after each pass."""
        checks = is_checking()
        kernels = Kernels((), views_of(self.graph, self.layouts))
        for name in KERNEL_PASSES:
            kernels = PASSES[name](self, kernels)
            yield name, check_kernels(self.graph, kernels) if checks else kernels

    def kernels(self) -> Kernels:
        """The kernels after all passes."""
        return list(self.stages())[-1][1]


def _order_axes(grouping: Grouping, found: Kernels) -> Kernels:
    graph = grouping.graph
    own = arranged(graph, found.kernels, kept_values(found, graph), grouping.vector_bits)
    layouts = {**grouping.layouts, **own}
    return replace(found, views=views_of(graph, layouts), layouts=layouts)


def _add_epilogues(grouping: Grouping, found: Kernels) -> Kernels:
    if grouping.is_body:
        return found
    return with_epilogues(grouping.graph, found, kept_values(found, grouping.graph))


PASSES: dict[str, Callable[[Grouping, Kernels], Kernels]] = {
    "fused nests": lambda grouping, _: fuse(grouping.graph, grouping.layouts),
    "merged nests": lambda _, found: merged(found),
    "sunk nodes": lambda grouping, found: sunk(found, grouping.graph),
    "order of axes": _order_axes,
    "joins in place": lambda grouping, found: joined_in_place(grouping.graph, found),
    "matmul epilogues": _add_epilogues,
}


def check_kernels(graph: Graph, found: Kernels) -> Kernels:
    """Return the kernels if each reads what the graph is given or one before it makes, and one makes what is returned."""
    there = {*graph.inputs, *(capture.var for capture in graph.captures)}
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
        if not there.isdisjoint(node.outputs):
            raise GraphError(f"{node.primitive.name} at {node.source} is in two kernels")
        there.update(node.outputs)
    use(graph.outputs, "return")
    return found
