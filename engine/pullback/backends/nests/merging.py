"""Nests that were begun apart and can be one after all.

A nest is begun when the first of its nodes comes, and what the nest will read is not known yet: a node that shares nothing with
the nests before it begins another, and only later a third one reads both.

    a * b          nest 1          a * b, 1 - c, d * (1 - c), …
    1 - c          nest 2    ->
    d * (1 - c)
    a * b * d      nest 1

Two nests over one space become one where one gives the other what it reads element for element, or where both read the
same memory: at the place of the first, if all that the second reads is there by then; else at that of the second, if
nothing in between reads the first, and no store in between writes over what the first reads. In a step of a loop, where
a nest is a few instructions, this is most of what calling them costs.
"""

from bisect import bisect_left
from dataclasses import replace

from pullback.backends.nests.fusion import MOST_NODES, FusedNodes, Kernel, Kernels, nodes_of, read_elsewhere
from pullback.backends.nests.views import Views
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom

#: Earlier nests that a nest is compared with: bounds the time that long programs take.
_NESTS_SEEN = 32


def merged(found: Kernels) -> Kernels:
    """The kernels with as few nests as this page allows."""
    merging = _Merging(found)
    position = 0
    while position < len(merging.kernels):
        other = merging.partner(position)
        if other is None:
            position += 1
        else:  # what has become larger is looked at again where it is now
            position = merging.merge(*other)
    return replace(found, kernels=tuple(merging.kernels))


@dataclass(frozen=True, slots=True)
class _Traffic:
    """The values that a kernel makes, and those it reads from memory, with their roots; of some it reads other places than its own."""

    made: set[Atom]
    read: set[tuple[Atom, Atom]]
    roots: set[Atom]
    elsewhere: set[Atom]


class _Merging:
    """Kernels in order while nests of them become one, with what each makes and reads, which is used many times."""

    def __init__(self, found: Kernels) -> None:
        self._found = found
        self.kernels = list(found.kernels)
        self._traffic = [_traffic_of(kernel, found.views) for kernel in self.kernels]
        # Numbers grow along the order, as positions do, but do not change when a kernel goes.
        self._numbers = list(range(len(self.kernels)))
        self._nests = {number: kernel for number, kernel in enumerate(self.kernels) if isinstance(kernel, FusedNodes)}
        self._order = list(self._nests)
        self._maker = {var: number for number, one in enumerate(self._traffic) for var in one.made}

    def partner(self, second: int) -> tuple[int, int, int] | None:
        """An earlier nest that a nest can be one with, the two, and the place of which of them they take."""
        nest = self.kernels[second]
        if not isinstance(nest, FusedNodes):
            return None
        latest = max((self._maker.get(root, -1) for root in self._traffic[second].roots), default=-1)
        is_unrelated = nest.read.isdisjoint
        end = bisect_left(self._order, self._numbers[second])
        for number in reversed(self._order[max(0, end - _NESTS_SEEN) : end]):
            earlier = self._nests[number]
            if is_unrelated(earlier.values) and is_unrelated(earlier.read):
                continue
            if earlier.space != nest.space or len(earlier.nodes) + len(nest.nodes) > MOST_NODES:
                continue
            first = bisect_left(self._numbers, number)
            if not self._reads_in_registers(second, first, earlier):
                continue
            if latest <= number:  # all that it reads is made by then
                return first, second, first
            made = self._traffic[first].made
            if not all(made.isdisjoint(between.roots) for between in self._traffic[first + 1 : second]):
                continue
            if self._found.can_wait(earlier, self.kernels[first + 1 : second]):
                return first, second, second
        return None

    def merge(self, first: int, second: int, place: int) -> int:
        """Make two nests one; gives its place."""
        earlier, nest = self.kernels[first], self.kernels[second]
        assert isinstance(earlier, FusedNodes)  # noqa: S101
        assert isinstance(nest, FusedNodes)  # noqa: S101
        one, other = self._traffic[first], self._traffic[second]
        self.kernels[place] = self._nests[self._numbers[place]] = FusedNodes(
            nest.space, [*earlier.nodes, *nest.nodes], earlier.values | nest.values, earlier.read | nest.read
        )
        read = one.read | {(atom, root) for atom, root in other.read if atom not in earlier.values}
        roots, elsewhere = {root for _, root in read}, one.elsewhere | other.elsewhere
        self._traffic[place] = _Traffic(one.made | other.made, read, roots, elsewhere)
        moved, gone = (other, second) if place == first else (one, first)
        self._maker.update(dict.fromkeys(moved.made, self._numbers[place]))
        del self._order[bisect_left(self._order, self._numbers[gone])]
        for column in (self.kernels, self._traffic, self._numbers):
            del column[gone]
        return place if place == first else place - 1

    def _reads_in_registers(self, second: int, first: int, earlier: FusedNodes) -> bool:
        """True if all that a nest reads of an earlier one is at the same place: no view of it, no sum, and nothing by positions."""
        made, nest = self._traffic[first].made, self._traffic[second]
        if made.isdisjoint(nest.roots):
            return True
        return made.isdisjoint(nest.elsewhere) and all(
            atom in earlier.values or root not in made for atom, root in nest.read
        )


def _traffic_of(kernel: Kernel, views: Views) -> _Traffic:
    inside = kernel.values if isinstance(kernel, FusedNodes) else set()
    nodes = list(nodes_of(kernel))
    read = {(atom, views.access(atom).root) for node in nodes for atom in node.inputs if atom not in inside}
    elsewhere = {views.access(atom).root for node in nodes for atom in read_elsewhere(node)}
    made: set[Atom] = {var for node in nodes for var in node.outputs}
    return _Traffic(made, read, {root for _, root in read}, elsewhere)
