"""Everything that the text of a program depends on, as a key: two programs of one key have one text.

With a key, object code that is on disk is found without writing the text first, which takes longer than everything else about
a program that was compiled before. So the key has to say all: the graph with its parameters and numbers to the last bit, where
every value lives, the width of vectors, and the very sources that write texts. What has no exact form makes a program without
a key: then its text is written and is its own key. `PULLBACK_CACHE=check` writes the text always, and compares them with each
other.
"""

import functools
import hashlib
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pullback.backends.native.epilogues import epilogue_of
from pullback.backends.native.memory import Memory
from pullback.backends.nests.fusion import ProductWithEpilogue, nodes_of
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.ir.graph import Atom, Graph, Literal, Var
from pullback.ir.strides import contiguous_strides

#: Every source that a program may be made by.
_PACKAGE = Path(__file__).parents[2]


class _InexactError(Exception):
    """Something that cannot be written down so that only its equals are written the same."""


def program_key(memory: Memory, vector_bits: int) -> str:
    """The key of the program of a graph with its memory, or "" where it has none."""
    try:
        parts = [sources_fingerprint(), np.__version__, str(vector_bits), *_of_memory(memory)]
    except _InexactError:
        return ""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@functools.cache
def sources_fingerprint() -> str:
    """The sources of this package, by place, size and times of change: what Python itself goes by, and one time more."""
    files = sorted(_source_files(str(_PACKAGE)))
    if not files:
        raise _InexactError("the package is not in files")
    return hashlib.sha256(repr((str(_PACKAGE), files)).encode()).hexdigest()


def _source_files(folder: str) -> Iterator[tuple[str, int, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                facts = entry.stat()
                yield entry.path, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
            elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _source_files(entry.path)


# --- graphs and their memory --------------------------------------------------------------------------------------------
def _of_memory(memory: Memory) -> Iterator[str]:
    numbers: dict[Var, int] = {}
    yield from _of_graph(memory.graph, numbers)
    for var, number in list(numbers.items()):
        access = memory.kernels.views.access(var)
        if access.root is not var or access.strides != contiguous_strides(var.type.shape):
            root = _of_literal(access.root) if isinstance(access.root, Literal) else str(numbers[access.root])
            yield f"view {number} of {root} from {access.offset} by {access.strides}"
    position = {id(node): number for number, node in enumerate(memory.graph.nodes)}
    for kernel in memory.kernels.kernels:
        yield f"kernel {type(kernel).__name__} {[position[id(node)] for node in nodes_of(kernel)]}"
        if isinstance(kernel, ProductWithEpilogue):
            yield f"blocks {epilogue_of(kernel, memory.kernels.views, memory.kept).epilogue.cuts}"
    yield f"kept {sorted(numbers[var] for var in memory.kept)}"
    yield f"offsets {sorted((numbers[var], offset) for var, offset in memory.offsets.items())}"
    yield f"returned {sorted((numbers[var], output) for var, output in memory.returned.items())}"
    yield f"scratch {sorted(memory.scratch.items())} copied {memory.copied} bytes {memory.nbytes} in registers {memory.in_registers}"


def _of_graph(graph: Graph, numbers: dict[Var, int]) -> Iterator[str]:
    """The text of a graph; values are numbered in the order in which they appear."""

    def declared(var: Var) -> str:
        numbers[var] = len(numbers)
        return f"{numbers[var]}:{_of_type(var.type)}"

    def of_atom(atom: Atom) -> str:
        return _of_literal(atom) if isinstance(atom, Literal) else str(numbers[atom])

    yield f"inputs {[declared(var) for var in graph.inputs]}"
    yield f"captures {[declared(capture.var) for capture in graph.captures]}"
    for node in graph.nodes:
        operands = [of_atom(atom) for atom in node.inputs]
        yield f"{_of_primitive(node.primitive)} {operands}"
        for name, value in node.params:
            yield f"{name} = {_of_value(value)}"
        yield f"gives {[declared(var) for var in node.outputs]}"
    yield f"outputs {[of_atom(atom) for atom in graph.outputs]}"
    yield f"guards {[(of_atom(guard.atom), guard.seen) for guard in graph.guards]}"


def _of_type(type_: ArrayType) -> str:
    return f"{_of_dtype(type_.dtype)}{type_.shape}{'weak' if type_.weak else ''}"


def _of_dtype(dtype: np.dtype[Any]) -> str:
    if dtype.kind not in "?biufc":
        raise _InexactError(f"dtype {dtype}")
    return dtype.str


def _of_literal(literal: Literal) -> str:
    return f"number {_of_value(literal.value)} as {_of_type(literal.type)}"


def _of_primitive(primitive: Primitive) -> str:
    """The name of a primitive, which identifies only those that are in the table."""
    if Primitive.table.get(primitive.name) is not primitive:
        raise _InexactError(f"primitive {primitive.name}")
    return primitive.name


def _of_value(value: Any) -> str:
    """A parameter or number, so that only the same is written the same: 1, True and 1.0 are three, and so are 0.0 and -0.0."""
    if isinstance(value, np.generic):
        return f"scalar {_of_array(np.asarray(value))}"
    if isinstance(value, np.dtype):
        return f"dtype {_of_dtype(value)}"
    if isinstance(value, Primitive):
        return f"primitive {_of_primitive(value)}"
    form = _FORMS.get(type(value))
    if form is None:
        raise _InexactError(f"a parameter of type {type(value).__name__}")
    return f"{type(value).__name__} {form(value)}"


def _of_parts(values: Sequence[Any]) -> str:
    return f"({', '.join(map(_of_value, values))})"


def _of_array(array: np.ndarray[Any, Any]) -> str:
    return f"{_of_dtype(array.dtype)}{array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"


_FORMS: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys((type(None), type(Ellipsis), bool, int, str), repr),
    float: lambda value: struct.pack("<d", value).hex(),
    complex: lambda value: struct.pack("<dd", value.real, value.imag).hex(),
    tuple: _of_parts,
    list: _of_parts,
    slice: lambda value: _of_parts((value.start, value.stop, value.step)),
    np.ndarray: _of_array,
    Graph: lambda value: "\n".join(_of_graph(value, {})),
}
