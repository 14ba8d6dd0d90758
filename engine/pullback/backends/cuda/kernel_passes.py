"""The kernels of a program on a device, by the passes over kernels in the order of `passes.pipeline`."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from pullback.backends.cuda.kernels.grids import keeps_rows
from pullback.backends.cuda.kernels.kernel_text import MOST_STEPS
from pullback.backends.llvm.builder.lanes import DTYPES
from pullback.backends.nests.data_movement import is_moved
from pullback.backends.nests.fusion import FusedNodes, Kernel, Kernels, fuse, nodes_of, why_not_fused
from pullback.backends.nests.joins_in_place import join_of, joined_in_place
from pullback.backends.nests.kernel_passes import run_passes
from pullback.backends.nests.merging import merged
from pullback.backends.nests.nest_building import nest_of
from pullback.backends.nests.rows import rows_joined
from pullback.backends.nests.sinking import sunk
from pullback.backends.nests.views import Views
from pullback.dataclass import dataclass
from pullback.ir.graph import Graph, Node, Var
from pullback.passes.pipeline import DEVICE_KERNEL_PASSES
from pullback.rules.indexing import scatter
from pullback.rules.joining import concatenate
from pullback.rules.storing import set_at


@dataclass(frozen=True, slots=True)
class KernelInput:
    """The input of the passes over kernels: a graph, and what is done on the device."""

    graph: Graph
    there: Mapping[Var, bool]
    """The values that are on the device."""
    by_nests: Collection[Node]
    """The nodes that read by positions which have been looked at."""
    writes_into: Callable[[Node], bool]
    """True of a node whose call of PyTorch writes its result into memory that is there."""

    def stages(self) -> Iterator[tuple[str, Kernels]]:
        """The kernels after each pass."""
        return run_passes(self.graph, ((name, partial(PASSES[name], self)) for name in DEVICE_KERNEL_PASSES))

    def belongs_to_nest(self, node: Node) -> bool:
        """True if a node is computed by a kernel of ours."""
        if node in self.by_nests:
            return True
        atoms = (*node.inputs, *node.outputs)
        return (
            node.outputs[0] in self.there
            and all(atom.type.dtype in DTYPES and atom.type.size for atom in atoms)
            and why_not_fused(node) is None
        )

    def is_moved(self, node: Node) -> bool:
        """True for a join or a store on the device that is nests."""
        return node.outputs[0] in self.there and is_moved(node, is_over=False)


def _keeps_rows(views: Views, kernel: FusedNodes) -> bool:
    """True if a nest that reads what it reduces can be a kernel."""
    nest, _ = nest_of(kernel, views, {var for node in kernel.nodes for var in node.outputs})
    return len(nest.steps) <= MOST_STEPS and keeps_rows(nest)


def _join_in_place(grouping: KernelInput, found: Kernels) -> Kernels:
    """Stores that write to where their arrays are neither take parts nor are parts."""
    stores = set(found.taken.values())

    def join_in(kernel: Kernel) -> Node | None:
        if isinstance(kernel, FusedNodes):
            return join_of(kernel)
        (node,) = nodes_of(kernel)
        joins = node.primitive in (concatenate, scatter) or (node.primitive is set_at and node not in stores)
        return node if joins and grouping.is_moved(node) else None

    def makes_parts(kernel: Kernel, is_in_order: bool) -> bool:  # noqa: FBT001 - as it is asked
        if isinstance(kernel, FusedNodes):
            return True
        (node,) = nodes_of(kernel)
        if node.outputs[0] not in grouping.there or node in stores:
            return False
        return grouping.is_moved(node) or (is_in_order and grouping.writes_into(node))

    return joined_in_place(grouping.graph, found, join_in, makes_parts)


PASSES: dict[str, Callable[[KernelInput, Kernels], Kernels]] = {
    "fused nests": lambda grouping, _: fuse(grouping.graph, belongs=grouping.belongs_to_nest),
    "merged nests": lambda _, found: merged(found),
    "sunk nodes": lambda grouping, found: sunk(found, grouping.graph),
    "joined rows": lambda _, found: rows_joined(found, partial(_keeps_rows, found.views)),
    "joins in place": _join_in_place,
}
