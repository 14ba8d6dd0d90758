"""Stores that write into the memory of their array instead of into a copy of it.

    b = mul a 2                nest, reads a                 b = mul a 2
    c = set_at b v {key=0}     copies b: d reads it    ->    d = sum b           what reads the array comes first
    d = sum b                                                c = set_at b v      in the memory of b

A store takes over the memory of an array that a kernel of this graph makes, that is not returned, and that is not read
behind the store in the order of the graph. Kernels keep to that: none that reads the array is moved behind the store.
"""

from collections.abc import Mapping, Sequence
from operator import mul

import numpy as np

from pullback.backends.nests.views import Access, Views, is_view
from pullback.core.types import Shape
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.ir.strides import contiguous_strides, offset, places, selected
from pullback.rules.storing import STORES

#: Elements of a value of which it is looked up, one by one, whether a store writes them: it takes about a millisecond.
_MOST_COMPARED = 1 << 14


def taken_over(graph: Graph, views: Views) -> dict[Var, Node]:
    """Map from each array to the store that takes it over."""
    made = {var for node in graph.nodes if not is_view(node) for var in node.outputs}
    returned = {views.access(atom).root for atom in graph.outputs}
    last: dict[Var, Node] = {}
    for node in graph.nodes:
        if is_view(node):
            continue
        for root in {views.access(atom).root for atom in node.inputs}:
            if isinstance(root, Var):
                last[root] = node
    return {
        root: node
        for root, node in last.items()
        if root in made and root not in returned and array_of(node, views) is root
    }


def array_of(node: Node, views: Views) -> Var | None:
    """The array that a store can write into in place: all of it, in order, and apart from all else that it reads."""
    if node.primitive not in STORES:
        return None
    array, *others = node.inputs
    access = views.access(array)
    root = access.root
    if not isinstance(root, Var) or root.type.dtype != array.type.dtype or root.type.size != array.type.size:
        return None
    own = views.access(root)
    if not (_is_in_order(access, array.type.shape) and _is_in_order(own, root.type.shape) and own.root is root):
        return None
    if any(views.access(atom).root is root and not _is_apart(node, atom, views) for atom in others):
        return None
    return root


def _is_in_order(access: Access, shape: Shape) -> bool:
    in_order = contiguous_strides(shape)
    return access.offset == 0 and all(
        size == 1 or own == other for size, own, other in zip(shape, access.strides, in_order, strict=True)
    )


def _is_apart(node: Node, value: Atom, views: Views) -> bool:
    """True if a store by a basic key overwrites nothing that it reads of the same array."""
    array = node.inputs[0]
    if len(node.inputs) > 2:
        return False
    whole = places(array.type.shape)
    written = selected(whole, dict(node.params)["key"])
    if max(written.size, value.type.size) > _MOST_COMPARED:
        return False
    access = views.access(value)
    elements = _elements(access.offset, value.type.shape, access.strides)
    return elements.isdisjoint(_elements(offset(written, whole), written.shape, written.strides))


def _elements(first: int, shape: Shape, strides: Sequence[int]) -> set[int]:
    """The numbers of the elements of a view."""
    return {first + sum(map(mul, at, strides)) for at in np.ndindex(*shape)}


def readers_before(graph: Graph, taken: Mapping[Var, Node], views: Views) -> dict[Node, list[Node]]:
    """Map from each store that takes an array over to the other nodes that read the array."""
    found: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if is_view(node):
            continue
        for root in {views.access(atom).root for atom in node.inputs}:
            store = taken.get(root) if isinstance(root, Var) else None
            if store is not None and store is not node:
                found.setdefault(store, []).append(node)
    return found
