"""Nests that were begun apart and can be one after all.

A nest is begun when the first of its nodes comes, and what the nest will read is not known yet: a node that shares nothing with
the nests before it begins another, and only later a third one reads both.

    a * b          nest 1          a * b, 1 - c, d * (1 - c), …
    1 - c          nest 2    ->
    d * (1 - c)
    a * b * d      nest 1

Two nests over one space become one where one gives the other what it reads element for element, or where both read the same
memory: at the place of the first, if all that the second reads is there by then; else at that of the second, if nobody in
between reads the first. In a step of a loop, where a nest is a few instructions, this is most of what calling them costs.
"""

from collections.abc import Iterable, Sequence

from pullback.backends.native.fusing import MOST_NODES, Fused, Kernel, Kernels, nodes_of
from pullback.backends.native.views import Views
from pullback.ir.graph import Atom, Node, Var

#: Nests before a nest that it is held against: bounds the time that long programs take.
_NESTS_SEEN = 32


def merged(found: Kernels) -> Kernels:
    """The kernels with as few nests as this page allows."""
    kernels = list(found.kernels)
    position = 0
    while position < len(kernels):
        kernel = kernels[position]
        other = _partner(kernels, position, found.views) if isinstance(kernel, Fused) else None
        if other is None:
            position += 1
        else:  # what has become larger is looked at again where it is now
            position = _merge(kernels, *other)
    return Kernels(tuple(kernels), found.views)


def _partner(kernels: Sequence[Kernel], second: int, views: Views) -> tuple[int, int, int] | None:
    """An earlier nest that a nest can be one with, the two, and the place of which of them they take."""
    nest = kernels[second]
    assert isinstance(nest, Fused)  # noqa: S101
    seen = 0
    for first in range(second - 1, -1, -1):
        earlier = kernels[first]
        if not isinstance(earlier, Fused):
            continue
        seen += 1
        if seen > _NESTS_SEEN:
            return None
        if earlier.space != nest.space or len(earlier.nodes) + len(nest.nodes) > MOST_NODES:
            continue
        if not _are_related(earlier, nest) or not _reads_in_registers(nest, earlier, views):
            continue
        between = kernels[first + 1 : second]
        if not _reads_of(nest.nodes, views, nest.values | earlier.values) & _made_by(between):
            return first, second, first
        if not any(_reads(kernel, views) & _made_by([earlier]) for kernel in between):
            return first, second, second
    return None


def _merge(kernels: list[Kernel], first: int, second: int, place: int) -> int:
    """Make two nests one; gives its place."""
    earlier, nest = kernels[first], kernels[second]
    assert isinstance(earlier, Fused)  # noqa: S101
    assert isinstance(nest, Fused)  # noqa: S101
    read = earlier.read | nest.read
    kernels[place] = Fused(nest.space, [*earlier.nodes, *nest.nodes], earlier.values | nest.values, read)
    del kernels[second if place == first else first]
    return place if place == first else place - 1


def _are_related(earlier: Fused, nest: Fused) -> bool:
    return bool(nest.read & (earlier.values | earlier.read))


def _reads_in_registers(nest: Fused, earlier: Fused, views: Views) -> bool:
    """Whether all that a nest reads of an earlier one is at the same place: no view of it, and no sum."""
    made = _made_by([earlier])
    return all(
        atom in nest.values or atom in earlier.values or views.access(atom).root not in made
        for node in nest.nodes
        for atom in node.inputs
    )


def _reads(kernel: Kernel, views: Views) -> set[Atom]:
    return _reads_of(nodes_of(kernel), views, kernel.values if isinstance(kernel, Fused) else set())


def _reads_of(nodes: Iterable[Node], views: Views, inside: set[Var]) -> set[Atom]:
    """What nodes read from memory: the values that are not inside, or what those are views of."""
    return {views.access(atom).root for node in nodes for atom in node.inputs if atom not in inside}


def _made_by(kernels: Iterable[Kernel]) -> set[Atom]:
    return {var for kernel in kernels for node in nodes_of(kernel) for var in node.outputs}
