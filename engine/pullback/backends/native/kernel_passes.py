"""The kernels of a native program, by the passes over kernels in the order of `passes.pipeline`."""

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import partial

from pullback.backends.native.axis_orders import arranged
from pullback.backends.native.epilogues import with_epilogues
from pullback.backends.nests.fusion import Kernels, fuse, kept_values
from pullback.backends.nests.joins_in_place import joined_in_place
from pullback.backends.nests.kernel_passes import run_passes
from pullback.backends.nests.merging import merged
from pullback.backends.nests.sinking import sunk
from pullback.backends.nests.views import Layouts, views_of
from pullback.dataclass import dataclass
from pullback.ir.graph import Graph
from pullback.passes.pipeline import KERNEL_PASSES


@dataclass(frozen=True, slots=True)
class KernelInput:
    """The input of the passes over kernels: a graph and how it is given."""

    graph: Graph
    vector_bits: int
    layouts: Layouts = field(default_factory=dict)
    """Strides of inputs that are not in C order."""
    is_body: bool = False
    """True of a step of a loop or a branch. How much memory it takes does not depend on layouts, so products have no epilogue."""

    def stages(self) -> Iterator[tuple[str, Kernels]]:
        """The kernels after each pass."""
        return run_passes(self.graph, ((name, partial(PASSES[name], self)) for name in KERNEL_PASSES))

    def kernels(self) -> Kernels:
        """The kernels after all passes."""
        return list(self.stages())[-1][1]


def _order_axes(grouping: KernelInput, found: Kernels) -> Kernels:
    graph = grouping.graph
    own = arranged(graph, found.kernels, kept_values(found, graph), grouping.vector_bits)
    layouts = {**grouping.layouts, **own}
    return replace(found, views=views_of(graph, layouts), layouts=layouts)


def _add_epilogues(grouping: KernelInput, found: Kernels) -> Kernels:
    if grouping.is_body:
        return found
    return with_epilogues(grouping.graph, found, kept_values(found, grouping.graph))


PASSES: dict[str, Callable[[KernelInput, Kernels], Kernels]] = {
    "fused nests": lambda grouping, _: fuse(grouping.graph, grouping.layouts),
    "merged nests": lambda _, found: merged(found),
    "sunk nodes": lambda grouping, found: sunk(found, grouping.graph),
    "order of axes": _order_axes,
    "joins in place": lambda grouping, found: joined_in_place(grouping.graph, found),
    "matmul epilogues": _add_epilogues,
}
