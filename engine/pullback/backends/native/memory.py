"""Memory of a native program: every value is with the caller, or at an offset in one arena.

Values that are never alive together share bytes. A value of a nest may take the bytes of one that the nest reads for the
last time, element for element. What is returned is computed straight into its place where that place is its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field

from pullback.backends.native.emission import EMITTERS
from pullback.backends.native.epilogues import epilogue_of
from pullback.backends.native.kernel_passes import KernelInput
from pullback.backends.native.kernels.registers import pays
from pullback.backends.nests.fusion import (
    Kernel,
    Kernels,
    ProductWithEpilogue,
    SingleNode,
    kept_values,
    nest_in,
    nodes_of,
)
from pullback.backends.nests.stores import array_of
from pullback.backends.nests.views import Layouts
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.ir.strides import contiguous_strides
from pullback.planning.arena import ALIGNMENT, PlacedBuffers
from pullback.rules.storing import STORES

#: Fewer kernels are left as they are: there is little to save.
_FEWEST_KERNELS = 4


@dataclass(frozen=True, slots=True)
class Memory:
    """A graph as kernels with memory."""

    graph: Graph
    kernels: Kernels
    kept: frozenset[Var]
    """The values that are in memory at all."""
    offsets: dict[Var, int]
    """Offsets in bytes from the begin of the arena, for values that neither come from the caller nor are returned."""
    scratch: dict[int, int]
    """The offset of a kernel's scratch memory, by its number."""
    returned: dict[Var, int]
    """The output into whose memory a value is computed."""
    copied: tuple[int, ...]
    """The outputs that are copies: of what the caller gave, of numbers, of views, and of other outputs."""
    copying: tuple[Node, ...]
    """The stores that copy the array they store into."""
    nbytes: int
    in_registers: bool
    """True if it is a few numbers, computed by one kernel that has no memory at all."""

    @property
    def kernel_count(self) -> int:
        """The number of kernels that run, copies to outputs among them."""
        return 1 if self.in_registers else len(self.kernels.kernels) + len(self.copied)


@dataclass(slots=True, eq=False)
class _Slot:
    """Bytes that one value has, or several one after the other."""

    nbytes: int
    first: int
    last: int
    offset: int = -1


@dataclass(slots=True)
class _Plan:
    slots: dict[Var, _Slot] = field(default_factory=dict)
    all: list[_Slot] = field(default_factory=list)

    def new(self, nbytes: int, first: int, last: int) -> _Slot:
        slot = _Slot(-(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT, first, last)
        self.all.append(slot)
        return slot


def plan_memory(graph: Graph, vector_bits: int, layouts: Layouts | None = None, *, is_body: bool = False) -> Memory:
    """Kernels of a graph and their memory; what it is given is in C order but where it has a layout here."""
    kernels = KernelInput(graph, vector_bits, layouts or {}, is_body).kernels()
    kept = kept_values(kernels, graph)
    returned, copied = _outputs(graph, kernels)
    last_use = _last_uses(graph, kernels)
    _write_into_outputs(kernels, returned, last_use)
    plan = _Plan()
    scratch: dict[int, _Slot] = {}
    for number, kernel in enumerate(kernels.kernels):
        ending = _ending(kernel, number, kernels, last_use)
        for result in (var for node in nodes_of(kernel) for var in node.outputs):
            root = kernels.views.access(result).root
            if result not in kept or root in returned or root in plan.slots or not isinstance(root, Var):
                continue
            last = max(number, last_use.get(root, number))
            if root is not result:  # the first part of what is joined
                plan.slots[root] = plan.new(root.type.nbytes, number, last)
                continue
            before = _overwritten(kernel, number, result, kernels, plan, ending)
            if before is None:
                plan.slots[result] = plan.new(result.type.nbytes, number, last)
            else:
                del ending[before]
                plan.slots[result] = plan.slots[before]
                plan.slots[result].last = last
        nbytes = _scratch_of(kernel, kernels, kept, vector_bits)
        if nbytes:
            scratch[number] = plan.new(nbytes, number, number)
    nbytes = _place(plan.all)
    return Memory(
        graph,
        kernels,
        frozenset(kept),
        {var: slot.offset for var, slot in plan.slots.items()},
        {number: slot.offset for number, slot in scratch.items()},
        returned,
        copied,
        tuple(_copying(kernels, plan, returned)),
        nbytes,
        len(kernels.kernels) + len(copied) >= _FEWEST_KERNELS and pays(graph, vector_bits),
    )


def _scratch_of(kernel: Kernel, kernels: Kernels, kept: set[Var], vector_bits: int) -> int:
    """Bytes of scratch memory of a kernel."""
    if isinstance(kernel, SingleNode):
        return EMITTERS[kernel.node.primitive].scratch(kernel.node, vector_bits)
    if isinstance(kernel, ProductWithEpilogue):
        return sum(epilogue_of(kernel, kernels.views, kept).epilogue.partials())
    return 0


def _place(slots: Iterable[_Slot]) -> int:
    """Offsets, largest first; gives the size of the arena."""
    ordered = sorted(slots, key=lambda slot: -slot.nbytes)
    placed = PlacedBuffers(len(ordered))
    for slot in ordered:
        slot.offset = placed.add(slot.nbytes, slot.first, slot.last)
    return max((slot.offset + slot.nbytes for slot in ordered), default=0)


def _outputs(graph: Graph, kernels: Kernels) -> tuple[dict[Var, int], tuple[int, ...]]:
    made = {var for kernel in kernels.kernels for node in nodes_of(kernel) for var in node.outputs}
    returned: dict[Var, int] = {}
    copied = []
    for number, atom in enumerate(graph.outputs):
        root = kernels.views.access(atom).root
        # A view of all of a value in order is returned as the value, unless that is an output under its own name.
        own = isinstance(root, Var) and (
            root is atom or (root not in graph.outputs and _is_all_in_order(atom, kernels))
        )
        if isinstance(root, Var) and own and root in made and root not in returned:
            returned[root] = number
        else:
            copied.append(number)
    return returned, tuple(copied)


def _write_into_outputs(kernels: Kernels, returned: dict[Var, int], last_use: dict[Var, int]) -> None:
    """Compute arrays that stores take over in the output that the last store returns."""
    made = {var for kernel in kernels.kernels for node in nodes_of(kernel) for var in node.outputs}
    for number, kernel in reversed(list(enumerate(kernels.kernels))):
        if not isinstance(kernel, SingleNode) or kernel.node.outputs[0] not in returned:
            continue
        array = array_of(kernel.node, kernels.views)
        if array is not None and array in made and last_use[array] == number:
            returned[array] = returned[kernel.node.outputs[0]]


def _copying(kernels: Kernels, plan: "_Plan", returned: dict[Var, int]) -> Iterator[Node]:
    for kernel in kernels.kernels:
        if not isinstance(kernel, SingleNode) or kernel.node.primitive not in STORES:
            continue
        array, result = kernels.views.access(kernel.node.inputs[0]).root, kernel.node.outputs[0]
        places = [(plan.slots.get(var), returned.get(var)) for var in (array, result) if isinstance(var, Var)]
        if len(places) == 1 or places[0] == (None, None) or places[0] != places[1]:
            yield kernel.node


def _is_all_in_order(atom: Atom, kernels: Kernels) -> bool:
    access, shape = kernels.views.access(atom), atom.type.shape
    in_order = contiguous_strides(shape)
    same = (size == 1 or own == other for size, own, other in zip(shape, access.strides, in_order, strict=True))
    return access.offset == 0 and access.root.type.size == atom.type.size and all(same)


def _last_uses(graph: Graph, kernels: Kernels) -> dict[Var, int]:
    """The number of the last kernel that reads each value of memory; outputs are copied after all kernels."""
    last: dict[Var, int] = {}
    for number, kernel in enumerate(kernels.kernels):
        for node in nodes_of(kernel):
            for atom in node.inputs:
                root = kernels.views.access(atom).root
                if isinstance(root, Var):
                    last[root] = number
    for atom in graph.outputs:
        root = kernels.views.access(atom).root
        if isinstance(root, Var):
            last[root] = len(kernels.kernels)
    return last


def _ending(
    kernel: Kernel, number: int, kernels: Kernels, last_use: dict[Var, int]
) -> dict[Var, tuple[int, ...] | None]:
    """The values that a kernel is the last to read, with their strides where it reads them only in the order of its space."""
    if isinstance(kernel, SingleNode):
        array = array_of(kernel.node, kernels.views)
        return {array: None} if array is not None and last_use[array] == number else {}
    nest = nest_in(kernel)
    assert nest is not None  # noqa: S101 - what is not alone is a nest or has one
    found: dict[Var, tuple[int, ...] | None] = {}
    if isinstance(kernel, ProductWithEpilogue):  # other blocks read the factors again
        factors = (kernels.views.access(atom).root for atom in kernel.product.inputs)
        found.update((root, None) for root in factors if isinstance(root, Var))
    for node in nest.nodes:
        for atom in node.inputs:
            access = kernels.views.access(atom)
            if atom in nest.values or not isinstance(access.root, Var) or last_use.get(access.root) != number:
                continue
            strides = access.strides if atom.type.shape == nest.space and access.offset == 0 else None
            found[access.root] = strides if found.get(access.root, strides) == strides else None
    return found


def _overwritten(
    kernel: Kernel,
    number: int,
    result: Var,
    kernels: Kernels,
    plan: _Plan,
    ending: dict[Var, tuple[int, ...] | None],
) -> Var | None:
    """A value whose bytes a result can take: read here for the last time, and only in the order it is written."""
    nest = nest_in(kernel)
    if nest is not None and result not in nest.values:  # a sum is written when all is read
        return None
    own = kernels.views.access(result).strides
    for root, strides in ending.items():
        same = root.type.dtype.itemsize == result.type.dtype.itemsize and root.type.size == result.type.size
        slot = plan.slots.get(root)
        if slot is not None and slot.last == number and (nest is None or (same and strides == own)):
            return root
    return None
