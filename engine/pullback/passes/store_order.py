"""The order of stores and of the reads before them: a plan stores in the array's memory if no later node reads it.

    b = set_at a v {key=0}            d = add (index a {key=1}) w     what reads the old array comes before the store
    d = add (index a {key=1}) w  ->   b = set_at a v {key=0}

    b = set_at a v {key=0}            c = copy (index a {key=0})      or reads a copy of its part, where it needs what comes
    d = add (index a {key=0}) b  ->   b = set_at a v {key=0}          behind the store and the part is less than the array
                                      d = add c b

Before a store that copies its array all the same nothing is moved.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.keys import are_apart, places_of
from pullback.passes.loops.form import applied
from pullback.rules.indexing import index
from pullback.rules.inplace import copy
from pullback.rules.storing import STORES

#: Nodes that are moved before a store for one that reads its array, at most: what they make is kept for longer then.
_MOST_MOVED = 32

#: Stores that are put one before the other, at most.
_MOST_WAITING = 16


def order_stores(graph: Graph) -> Graph:
    """Rewrite what is on this page, inside loops and branches too."""
    nodes = tuple(node.with_bodies(order_stores) for node in graph.nodes)
    if any(new is not old for new, old in zip(nodes, graph.nodes, strict=True)):
        graph = replace(graph, nodes=nodes)
    if not any(node.primitive in STORES for node in nodes) or any(node.primitive.effect.writes for node in nodes):
        return graph
    order = _Order(graph)
    for node in nodes:
        order.put(node)
    if tuple(order.nodes) == nodes:
        return graph
    return graph.rewritten(order.nodes, order.now)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A node that reads an array or a view of it; None stands for the caller."""

    node: Node | None
    value: Var


class _Order:
    """The nodes of a graph while they are put into another order."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self._done: set[Node] = set()
        self._waiting: list[Node] = []
        """Stores whose readers are being put before them, each for the sake of the one before."""
        self._makers = {var: node for node in graph.nodes for var in node.outputs}
        self._positions = {node: position for position, node in enumerate(graph.nodes)}
        self._copies: dict[Atom, Var] = {}
        self._copied_for: set[tuple[Node | None, Atom]] = set()
        self._roots: dict[Var, Var] = {}
        self._readings: dict[Var, list[_Reading]] = {}
        for node in graph.nodes:
            if node.primitive.aliases_operand and isinstance(node.inputs[0], Var):
                self._roots.update(dict.fromkeys(node.outputs, self._root(node.inputs[0])))
            else:
                self._note(node, node.inputs)
        self._note(None, graph.ends())

    def _root(self, var: Var) -> Var:
        return self._roots.get(var, var)

    def _note(self, node: Node | None, atoms: Iterable[Atom]) -> None:
        for atom in atoms:
            if isinstance(atom, Var):
                self._readings.setdefault(self._root(atom), []).append(_Reading(node, atom))

    def now(self, atom: Atom, reader: Node | None = None) -> Atom:
        """The value that a reader reads: the copy that was made for it, if there is one."""
        return self._copies[atom] if (reader, atom) in self._copied_for else atom

    def put(self, node: Node) -> None:
        """Append a node, after those that should come before it."""
        if node in self._done:
            return
        array = node.inputs[0] if node.primitive in STORES else None
        if isinstance(array, Var) and self._root(array) in self._makers:
            self._waiting.append(node)
            self._put_readers(node, self._root(array))
            self._waiting.pop()
        inputs = tuple(self.now(atom, node) for atom in node.inputs)
        self._done.add(node)
        self.nodes.append(node if inputs == node.inputs else replace(node, inputs=inputs))

    def _put_readers(self, store: Node, array: Var) -> None:
        """Move the readers of the array before the store, or copy what they read if that is smaller than the array."""
        moved: list[Sequence[Node]] = []
        parts: dict[Atom, list[_Reading]] = {}
        for reading in self._readings.get(array, ()):
            if reading.node in self._done or (reading.node is store and not self._reads_what_it_writes(store, reading)):
                continue
            needed = None if reading.node in (None, store) else self._needed(reading.node)
            if needed is None:
                parts.setdefault(reading.value, []).append(reading)
            else:
                moved.append(needed)
        if sum(part.type.nbytes for part in parts) >= array.type.nbytes:
            return
        for node in chain.from_iterable(moved):
            self.put(node)
        for part, readings in parts.items():
            for node in self._needed(self._makers[part]) or () if isinstance(part, Var) else ():
                self.put(node)
            if part not in self._copies:
                made = applied(copy, [part], store.source)
                self.nodes.append(made)
                self._copies[part] = made.outputs[0]
            self._copied_for.update((reading.node, part) for reading in readings)

    def _reads_what_it_writes(self, store: Node, reading: _Reading) -> bool:
        """True if a store reads the array beside storing into it, but not by a key that is apart from its own."""
        array = store.inputs[0]
        if reading.value is array:
            return store.inputs.count(array) > 1
        maker = self._makers[reading.value]
        if len(store.inputs) > 2 or maker.primitive is not index or maker.inputs[0] is not array:
            return True
        own, theirs = (places_of(dict(node.params)["key"], array.type.shape) for node in (store, maker))
        return own is None or theirs is None or not are_apart(own, theirs)

    def _needed(self, node: Node) -> list[Node] | None:
        """A node behind what it needs and is not there yet; None where that is much, or a store that is waiting."""
        found: dict[Node, None] = {}
        stack = [node] if len(self._waiting) < _MOST_WAITING else self._waiting[-1:]
        while stack:
            current = stack.pop()
            if current in self._done or current in found:
                continue
            if current in self._waiting or len(found) >= _MOST_MOVED:
                return None
            found[current] = None
            stack.extend(
                self._makers[atom] for atom in current.inputs if isinstance(atom, Var) and atom in self._makers
            )
        return sorted(found, key=self._positions.__getitem__)
