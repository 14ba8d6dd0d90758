"""The graph in single-assignment form that every pass reads and writes.

    graph    ::=  inputs, captures, nodes in program order, outputs
    node     ::=  outputs = primitive(atoms; params)      with the user's source line
    atom     ::=  Var | Literal
    type     ::=  dtype[shape], marked weak where it stands for a Python scalar

All of it is frozen: a pass builds a new graph. Elementwise nodes broadcast their operands as NumPy does; a broadcast
needs no node of its own.
"""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A straight-line program over arrays."""

    inputs: tuple[Var, ...]
    captures: tuple[Capture, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Atom, ...]
