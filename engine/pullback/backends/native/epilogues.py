"""Products and the nests over their results as one kernel, where the result is large and has no other reader.

    d = matmul a b            product                      matmul with epilogue [65536, 64] in 64 blocks
    e = add d c; f = tanh e   nest [65536, 64]      ->       d = matmul a b; e = add d c; f = tanh e

The product goes where the nest is. Its result has no memory of its own then, only a block of it at a time has (`kernels.epilogue`).
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from pullback.backends.native.emission import StoredArray
from pullback.backends.native.kernels.nest_blocks import operands_of
from pullback.backends.nests.fusion import FusedNodes, Kernel, Kernels, ProductWithEpilogue, SingleNode, nodes_of
from pullback.backends.nests.joins_in_place import join_of
from pullback.backends.nests.nest_building import nest_of
from pullback.backends.nests.views import Access, Views
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Var
from pullback.rules.contractions import matmul

if TYPE_CHECKING:
    from pullback.backends.native.kernels.epilogue import Epilogue


@dataclass(frozen=True, slots=True)
class PlacedEpilogue:
    """A product and a nest as one kernel, with the access of each operand of the nest."""

    epilogue: "Epilogue"
    operands: tuple[Access, ...]


def with_epilogues(graph: Graph, found: Kernels, kept: Collection[Var]) -> Kernels:
    """The kernels, with each product in the nest that it is worth being computed for, block by block."""
    products = [
        (number, kernel)
        for number, kernel in enumerate(found.kernels)
        if isinstance(kernel, SingleNode) and kernel.node.primitive is matmul
    ]
    if not products:
        return found
    from pullback.backends.native.kernels.epilogue import may_pay, pays  # noqa: PLC0415 - 20 ms that products alone pay

    kernels: list[Kernel | None] = list(found.kernels)
    readers = _readers(graph, found)
    for number, kernel in products:
        (result,) = kernel.node.outputs
        if not may_pay(result.type.nbytes, kernel.node.inputs[0].type.shape[-1]):  # to describe it takes longer
            continue
        if len(readers[result]) != 1 or found.views.access(result).root is not result:
            continue
        (place,) = readers[result]
        nest = kernels[place] if place < len(kernels) else None
        if not isinstance(nest, FusedNodes) or join_of(nest) is not None:
            continue
        if not found.can_wait(kernel, [one for one in kernels[number + 1 : place] if one is not None]):
            continue
        one = ProductWithEpilogue(kernel.node, nest)
        placed = _placed(one, found.views, kept)
        if placed is not None and pays(placed.epilogue):
            kernels[place], kernels[number] = one, None
    return replace(found, kernels=tuple(kernel for kernel in kernels if kernel is not None))


def epilogue_of(kernel: ProductWithEpilogue, views: Views, kept: Collection[Var]) -> PlacedEpilogue:
    """The layout of a matmul with epilogue."""
    placed = _placed(kernel, views, kept)
    assert placed is not None  # noqa: S101 - it was asked before the kernel was made
    return placed


def _placed(kernel: ProductWithEpilogue, views: Views, kept: Collection[Var]) -> PlacedEpilogue | None:
    from pullback.backends.native.kernels.epilogue import epilogue  # noqa: PLC0415 - as above
    from pullback.backends.native.kernels.product import described  # noqa: PLC0415

    (a, b), (c,) = kernel.product.inputs, kernel.product.outputs
    nest, places = nest_of(kernel.nest, views, kept)
    results = [number for number, read in enumerate(nest.reads) if places[read.pointer].root is c]
    if any(places[nest.reads[number].pointer].offset for number in results):
        return None
    product = described(_stored(a, views), _stored(b, views), _stored(c, views))
    one = epilogue(product, nest, results)
    return None if one is None else PlacedEpilogue(one, tuple(places[operand.pointer] for operand in operands_of(nest)))


def _stored(atom: Atom, views: Views) -> StoredArray:
    return StoredArray("", atom.type.shape, views.access(atom).strides, atom.type.dtype)


def _readers(graph: Graph, found: Kernels) -> defaultdict[Atom, set[int]]:
    """Map from each value in memory to the numbers of the kernels that read it; the number after the last one is the caller."""
    readers: defaultdict[Atom, set[int]] = defaultdict(set)
    for number, kernel in enumerate(found.kernels):
        for node in nodes_of(kernel):
            for atom in node.inputs:
                readers[found.views.access(atom).root].add(number)
    for atom in graph.outputs:
        readers[found.views.access(atom).root].add(len(found.kernels))
    return readers
