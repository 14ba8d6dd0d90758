"""Repetition in straight code: the steps of a Python loop, which was recorded step by step.

    for _ in range(4):              b = sin a; c = mul b w; d = sin c; e = mul d w; f = sin e; …
        y = np.sin(y) * w           period 2, 4 steps; sin reads mul of the step before, mul reads sin of its own and w

Nodes get a number by what they do (primitive, parameters, types). A period is a distance at which equal runs of numbers
follow each other; steps repeat where every operand comes from the same place: of the same step, of a step before, or from
outside of the loop.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from pullback.core.primitive import Effect
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.loops import FEWEST_NODES_SAVED
from pullback.rules import elementwise
from pullback.simplification.common_subexpressions import identity, value_identity

#: A shorter loop stays as it was recorded.
FEWEST_STEPS = 8

#: Steps that a value is handed on for, at most: x[t-1], x[t-2], ….
LONGEST_DELAY = 8

#: Runs of nodes up to this length suggest periods by their repetition, each length so many; and so many parts of a period
#: may look alike.
_LONGEST_RUN = 64
_PERIODS = 3
_MOST_PARTS = 5

#: Runs of equal nodes that are looked at, the longest first.
_MOST_TRIED = 8


@dataclass(frozen=True, slots=True)
class InnerOperand:
    """An operand made by a node of the period, `delay` steps before; `starts` are its values before the first step, latest first."""

    position: int
    output: int
    delay: int
    starts: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class OuterOperand:
    """An operand that is made before the loop: its value in each step."""

    atoms: tuple[Atom, ...]


LoopOperand: TypeAlias = InnerOperand | OuterOperand
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Repetition:
    """The nodes from `start` on are `steps` times the same `period` nodes; `reads` are their operands, by node."""

    start: int
    period: int
    steps: int
    reads: tuple[tuple[LoopOperand, ...], ...]

    @property
    def saved(self) -> int:
        """The number of nodes less when it is a loop."""
        return (self.steps - 1) * self.period

    @property
    def is_worthwhile(self) -> bool:
        """True if it is worth a loop."""
        return self.steps >= FEWEST_STEPS and self.saved >= FEWEST_NODES_SAVED

    def without_last(self) -> "Repetition":
        """The same without its last step."""

        def shortened(read: LoopOperand) -> LoopOperand:
            return OuterOperand(read.atoms[:-1]) if isinstance(read, OuterOperand) else read

        reads = tuple(tuple(map(shortened, own)) for own in self.reads)
        return replace(self, steps=self.steps - 1, reads=reads)


def repetitions(graph: Graph) -> Iterator[Repetition]:
    """Repetitions in a graph that are worth a loop; the first is most likely the one that saves most."""
    if len(graph.nodes) <= FEWEST_NODES_SAVED:
        return
    numbers = _numbered(graph.nodes)
    runs = [
        (steps, period, start)
        for period in _likely_periods(graph.nodes, numbers)
        for start, steps in _runs(numbers, period)
        if steps >= FEWEST_STEPS and (steps - 1) * period >= FEWEST_NODES_SAVED
    ]
    runs.sort(key=lambda run: (-(run[0] - 1) * run[1], run[1]))
    if not runs:
        return
    code = _Code(graph)
    for steps, period, start in runs[:_MOST_TRIED]:
        repetition = code.repeating(start, period, steps)
        if repetition is not None and repetition.is_worthwhile:
            yield code.cut_best(repetition)


def _numbered(nodes: Sequence[Node]) -> Numbers:
    """A number for each node, equal for nodes that do the same to operands of the same types."""
    number_of: dict[Any, int] = {}
    numbers = np.empty(len(nodes), np.int64)
    for position, node in enumerate(nodes):
        key: Any = position  # no two of those with an effect are the same
        if node.primitive.effect is Effect.NONE:
            operands = tuple((type(atom), atom.type) for atom in node.inputs)
            params = value_identity(node.params) if node.params else ()
            key = (node.primitive, params, operands, tuple(var.type for var in node.outputs))
            if node.primitive is elementwise.power and isinstance(node.inputs[1], Literal):
                key = (*key, value_identity(node.inputs[1].value))  # an exponent that is known is no call of pow
        numbers[position] = number_of.setdefault(key, len(number_of))
    return numbers


def _likely_periods(nodes: Sequence[Node], numbers: Numbers) -> list[int]:
    """The most frequent distances between a run of nodes and its next occurrence; of equal lines, then of equal numbers too."""
    number_of = {var: number for node, number in zip(nodes, numbers.tolist(), strict=True) for var in node.outputs}
    lines = [
        (number, node.source, tuple(number_of.get(atom, -1) for atom in node.inputs if isinstance(atom, Var)))
        for node, number in zip(nodes, numbers.tolist(), strict=True)
    ]
    literals = [
        (line, tuple(identity(atom) for atom in node.inputs if isinstance(atom, Literal)))
        for node, line in zip(nodes, lines, strict=True)
    ]
    plain = _frequent_distances(numbers)
    periods = dict.fromkeys((*plain, *_frequent_distances(_named(lines)), *_frequent_distances(_named(literals))))
    # Nodes that do the same may read from different places, so that the true period is several of theirs.
    periods.update(dict.fromkeys(period * factor for period in plain[:_PERIODS] for factor in range(2, _MOST_PARTS)))
    return list(periods)


def _named(values: Sequence[Hashable]) -> Numbers:
    number_of: dict[Hashable, int] = {}
    return np.array([number_of.setdefault(value, len(number_of)) for value in values], np.int64)


def _frequent_distances(numbers: Numbers) -> list[int]:
    distances: dict[int, None] = {}
    names, length = numbers, 1
    while length <= _LONGEST_RUN and len(names):
        order = np.argsort(names, kind="stable")
        same = np.diff(names[order]) == 0
        most = Counter(np.diff(order)[same].tolist()).most_common(_PERIODS)
        distances.update(dict.fromkeys(distance for distance, _ in most))
        pairs = names[:-length] * (int(names.max()) + 1) + names[length:]  # names of runs of twice the length
        names = np.unique(pairs, return_inverse=True)[1].ravel()
        length *= 2
    return list(distances)


def _runs(numbers: Numbers, period: int) -> Iterator[tuple[int, int]]:
    """Starts and steps of the stretches in which every node is followed by its like after a period."""
    equal = np.concatenate([[False], numbers[:-period] == numbers[period:], [False]])
    edges = np.flatnonzero(equal[1:] != equal[:-1])
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield start, (end - start) // period + 1


class _Code:
    """The nodes of a graph, and where each of their operands is made."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = graph.nodes
        self.made = {
            var: (position, number)
            for position, node in enumerate(graph.nodes)
            for number, var in enumerate(node.outputs)
        }
        outside = (-1, 0)
        self.makers = [
            tuple(self.made.get(atom, outside) if isinstance(atom, Var) else outside for atom in node.inputs)
            for node in graph.nodes
        ]

    def repeating(self, start: int, period: int, steps: int) -> Repetition | None:
        """The longest row of steps of a stretch whose operands come from the same places, if there is one."""
        middle = start + steps // 2 * period
        first_of_all = max(start, middle - LONGEST_DELAY * period)
        places_by_node = [
            [(position - maker, output) if maker >= first_of_all else None for maker, output in self.makers[position]]
            for position in range(middle, middle + period)
        ]
        first, last = steps // 2, steps // 2
        while first > 0 and self._agrees(start + (first - 1) * period, places_by_node):
            first -= 1
        while last + 1 < steps and self._agrees(start + (last + 1) * period, places_by_node):
            last += 1
        # Values that are read from before the first step may be any that are there by then.
        for earlier in range(max(0, first - LONGEST_DELAY), first):
            begin = start + earlier * period
            if all(self._agrees(start + step * period, places_by_node, begin) for step in range(earlier, first)):
                first = earlier
                break
        latest = max(
            (
                self.makers[middle + node][number][0]
                for node, places in enumerate(places_by_node)
                for number, place in enumerate(places)
                if place is None
            ),
            default=-1,
        )
        if latest >= start:
            first = max(first, (latest - start) // period + 1)
        begin = start + first * period
        for step in range(first, last + 1):
            if not self._reads_from_before(start + step * period, places_by_node, begin):
                last = step - 1
                break
        if last - first + 1 < FEWEST_STEPS:
            return None
        reads = [
            tuple(
                self._read(begin, period, last - first + 1, node, number, place) for number, place in enumerate(places)
            )
            for node, places in enumerate(places_by_node)
        ]
        return Repetition(begin, period, last - first + 1, tuple(reads))

    def _agrees(
        self, begin: int, places_by_node: Sequence[Sequence[tuple[int, int] | None]], loop: int | None = None
    ) -> bool:
        """True if the step from `begin` on reads the loop's values at these places; older values may be any."""
        for position, places in enumerate(places_by_node, begin):
            for (maker, output), place in zip(self.makers[position], places, strict=True):
                if place is None or (position - maker, output) == place:
                    continue
                if loop is None or maker >= loop or position - place[0] >= loop:
                    return False
        return True

    def _reads_from_before(
        self, begin: int, places_by_node: Sequence[Sequence[tuple[int, int] | None]], loop: int
    ) -> bool:
        """True if what a step reads from outside is there before the loop."""
        return all(
            maker < loop
            for position, places in enumerate(places_by_node, begin)
            for (maker, _), place in zip(self.makers[position], places, strict=True)
            if place is None
        )

    def _read(
        self, begin: int, period: int, steps: int, node: int, number: int, place: tuple[int, int] | None
    ) -> LoopOperand:
        atoms = (self.nodes[begin + step * period + node].inputs[number] for step in range(steps))
        if place is None:
            return OuterOperand(tuple(atoms))
        distance, output = place
        position, delay = (node - distance) % period, -((node - distance) // period)
        starts = [next(atoms) for _ in range(delay)]
        return InnerOperand(position, output, delay, tuple(reversed(starts)))

    def cut_best(self, repetition: Repetition) -> Repetition:
        """The same steps, begun where least is handed from one to the next."""
        period = repetition.period
        handed = [0] * period
        reach: dict[tuple[int, int], int] = {}
        for node, reads in enumerate(repetition.reads):
            for read in reads:
                if isinstance(read, InnerOperand):
                    source = (read.position, read.output)
                    reach[source] = max(reach.get(source, 0), read.delay * period + node - read.position)
        for (position, output), distance in reach.items():
            nbytes = self.nodes[repetition.start + position].outputs[output].type.nbytes
            for cut in range(period):
                handed[cut] += nbytes * ((position + distance - cut) // period - (position - cut) // period)
        best = min(range(period), key=lambda cut: handed[cut])
        if handed[best] < handed[0] and repetition.steps > FEWEST_STEPS:
            shifted = self.repeating(repetition.start + best, period, repetition.steps - 1)
            if shifted is not None and shifted.is_worthwhile:
                return shifted
        return repetition
