"""The graph in single-assignment form that every pass reads and writes.

    graph    ::=  inputs, captures, nodes in program order, outputs
    node     ::=  outputs = primitive(atoms; params)      with the user's source line
    atom     ::=  Var | Literal
    type     ::=  dtype[shape], marked weak where it stands for a Python scalar

All of it is frozen: a pass builds a new graph. Elementwise nodes broadcast their operands as NumPy does; a broadcast
needs no node of its own.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from pullback.primitive import Primitive

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """What is known of a value before it exists.

    A weak type stands for a Python scalar: it takes part in NumPy's promotion by its kind alone (NEP 50).
    """

    shape: Shape
    dtype: np.dtype[Any]
    weak: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of a dense array of this type."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        dtype = self.dtype.str[1:] if not self.weak else self.dtype.kind
        return f"{dtype}[{','.join(map(str, self.shape))}]"


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

    primitive: "Primitive"
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


_PYTHON_SCALARS: dict[type, np.dtype[Any]] = {
    bool: np.dtype(bool),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


def type_of(value: Any) -> ArrayType:
    """Type of a concrete value; Python scalars are weak."""
    weak = _PYTHON_SCALARS.get(type(value))
    if weak is not None:
        return ArrayType((), weak, weak=True)
    return ArrayType(tuple(value.shape), value.dtype)


def is_array_like(value: Any) -> bool:
    """Whether a value can be an operand: an array, a NumPy scalar or a Python scalar."""
    return isinstance(value, (np.ndarray, np.generic)) or type(value) in _PYTHON_SCALARS
