"""The graph in single-assignment form that every pass reads and writes.

    graph    ::=  inputs, captures, nodes in program order, outputs, guards
    node     ::=  outputs = primitive(atoms; params)      with the user's source line
    atom     ::=  Var | Literal
    params   ::=  numbers, axes, keys, …; of loops and branches closed graphs without captures
    type     ::=  dtype[shape], marked weak where it stands for a Python scalar

All of it is frozen: a pass builds a new graph. Elementwise nodes broadcast their operands as NumPy does; a broadcast
needs no node of its own.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import is_
from typing import Any, TypeAlias

from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A value of the graph; identity is identity."""

    index: int
    type: ArrayType


@dataclass(frozen=True, slots=True)
class Literal:
    """A number written into the graph: a Python scalar (weak) or a NumPy scalar (strong)."""

    value: Any
    type: ArrayType


Atom: TypeAlias = Var | Literal


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """An array that the function makes for itself, the same on each call."""

    var: Var
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One application of a primitive."""

    primitive: Primitive
    inputs: tuple[Atom, ...]
    params: tuple[tuple[str, Any], ...]
    outputs: tuple[Var, ...]
    source: str

    def bodies(self) -> list[tuple[str, "Graph"]]:
        """The graphs among the parameters, of loops and branches, by name."""
        found: list[tuple[str, Graph]] = []
        for name, value in self.params:
            if isinstance(value, Graph):
                found.append((name, value))
            elif isinstance(value, tuple):
                found += [(f"{name}[{k}]", part) for k, part in enumerate(value) if isinstance(part, Graph)]
        return found

    def reading(self, inputs: tuple[Atom, ...]) -> "Node":
        """The node with other operands; the node itself where they are its own."""
        if all(map(is_, inputs, self.inputs)):
            return self
        return Node(self.primitive, inputs, self.params, self.outputs, self.source)

    def with_bodies(self, change: Callable[["Graph"], "Graph"]) -> "Node":
        """The node with every graph among its parameters changed."""

        def changed(value: Any) -> Any:
            if isinstance(value, Graph):
                return change(value)
            return tuple(map(changed, value)) if isinstance(value, tuple) else value

        if not self.bodies():
            return self
        return replace(self, params=tuple((name, changed(value)) for name, value in self.params))


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A guard, the value that the function saw when it looked at one: the graph is right only where it would see the same."""

    atom: Atom
    seen: bool | int

    def holds(self, value: Any) -> bool:
        """True if a value looks the same; its truth is compared where truth was seen."""
        return type(self.seen)(value) == self.seen


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A straight-line program over arrays."""

    inputs: tuple[Var, ...]
    captures: tuple[Capture, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Atom, ...]
    guards: tuple[Guard, ...] = ()

    def ends(self) -> tuple[Atom, ...]:
        """The results, and what guards look at."""
        return (*self.outputs, *(guard.atom for guard in self.guards))

    def uses(self) -> "Counter[Atom]":
        """The number of times that each value is read, by nodes and at the ends."""
        return Counter([*(atom for node in self.nodes for atom in node.inputs), *self.ends()])

    def rewritten(self, nodes: Iterable[Node], current: Callable[[Atom], Atom]) -> "Graph":
        """The graph of other nodes, whose ends are what is there now."""
        guards = tuple(replace(guard, atom=current(guard.atom)) for guard in self.guards)
        return replace(self, nodes=tuple(nodes), outputs=tuple(map(current, self.outputs)), guards=guards)

    def guards_after(self) -> dict[int, list[int]]:
        """Map from the position of a node to the guards to be checked after it: each as soon as its value is there, in their order.

        Position -1 is before the first node. The order is that in which the function looked, so that a guard that fails
        tells that those before it held.
        """
        defined = {var: position for position, node in enumerate(self.nodes) for var in node.outputs}
        after: dict[int, list[int]] = {}
        position = -1
        for number, guard in enumerate(self.guards):
            if isinstance(guard.atom, Var):
                position = max(position, defined.get(guard.atom, -1))
            after.setdefault(position, []).append(number)
        return after


def with_guards_returned(graph: Graph) -> Graph:
    """The graph with the guarded values as further outputs, for walks that know outputs only."""
    return replace(graph, outputs=graph.ends(), guards=())


def with_guards_of(graph: Graph, original: Graph) -> Graph:
    """The inverse: the last outputs are guards again, those of the original."""
    count = len(graph.outputs) - len(original.guards)
    guards = tuple(
        replace(guard, atom=atom) for guard, atom in zip(original.guards, graph.outputs[count:], strict=True)
    )
    return replace(graph, outputs=graph.outputs[:count], guards=guards)
