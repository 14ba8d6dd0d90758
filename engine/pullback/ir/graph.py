"""The graph in single-assignment form that every pass reads and writes.

    graph    ::=  inputs, captures, nodes in program order, outputs
    node     ::=  outputs = primitive(atoms; params)      with the user's source line
    atom     ::=  Var | Literal
    params   ::=  numbers, axes, keys, …; of loops and branches closed graphs without captures
    type     ::=  dtype[shape], marked weak where it stands for a Python scalar

All of it is frozen: a pass builds a new graph. Elementwise nodes broadcast their operands as NumPy does; a broadcast
needs no node of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pullback.ir.types import ArrayType
from pullback.primitive import Primitive


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
    """An array that the function met in a closure or a global: an input that the caller does not pass."""

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
class Graph:
    """A straight-line program over arrays."""

    inputs: tuple[Var, ...]
    captures: tuple[Capture, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Atom, ...]
