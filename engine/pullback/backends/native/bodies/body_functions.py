"""Steps of loops and branches: graphs as functions of their own, and what goes from step to step.

A step is a function of pointers to what its graph is given, to where its results go, and to its part of the arena, which every
step uses again. Its inputs may be in any layout: a transposed matrix costs nothing.
"""

from collections.abc import Mapping, Sequence

from pullback.backends.native.emission import Emission, StoredArray
from pullback.backends.native.kernels.data_movement import copy_into
from pullback.backends.native.memory import Memory, plan_memory
from pullback.backends.native.program import emit_graph
from pullback.backends.native.support import why_not
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Literal, Var
from pullback.planning.arena import ALIGNMENT
from pullback.rules import elementwise

#: A counter of Python's that starts within the first and goes by at most the second does not outgrow 64 bits in a lifetime.
_FARTHEST_START, _LARGEST_STRIDE = 2**62, 2**10


def why_not_steps(graph: Graph, starts: Mapping[Var, Atom] | None = None) -> str | None:
    """The first node of a body that cannot be native, if there is one; `starts` are what carries of a loop begin with."""
    counters = counting(graph, starts or {})
    reasons = (why_not(node) for node in graph.nodes if id(node) not in counters)
    return next((reason for reason in reasons if reason is not None), None)


def counting(graph: Graph, starts: Mapping[Var, Atom]) -> set[int]:
    """Additions of Python integers that make a counter one step larger."""
    makers = {var: node for node in graph.nodes for var in node.outputs}
    found = set()
    for (inside, start), after in zip(starts.items(), graph.outputs, strict=False):
        maker = makers.get(after) if isinstance(after, Var) else None
        if maker is None or not _is_integer(start, _FARTHEST_START) or maker.primitive is not elementwise.add:
            continue
        others = [atom for atom in maker.inputs if atom is not inside]
        if len(others) == 1 and _is_integer(others[0], _LARGEST_STRIDE):
            found.add(id(maker))
    return found


def _is_integer(atom: Atom, bound: int) -> bool:
    return isinstance(atom, Literal) and atom.type.weak and atom.type.dtype.kind == "i" and abs(atom.value) <= bound


def room(type_: ArrayType) -> int:
    """Bytes of a value in scratch memory."""
    return rounded_up(max(type_.nbytes, 1))


def rounded_up(nbytes: int) -> int:
    """Bytes in whole lines of the cache."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def memory_of(graph: Graph, given: Sequence[StoredArray], vector_bits: int) -> Memory:
    """Kernels and memory of a graph for inputs in these layouts; the size of the memory does not depend on them."""
    return plan_memory(
        graph, vector_bits, {var: one.strides for var, one in zip(graph.inputs, given, strict=True)}, is_body=True
    )


def nbytes_of(graph: Graph, vector_bits: int) -> int:
    """Bytes of the arena of a step."""
    return plan_memory(graph, vector_bits, is_body=True).nbytes


def write_step(emission: Emission, memory: Memory, name: str) -> str:
    """A function of the inputs of a graph, of its outputs and of its arena, to be `attempt`ed; gives its name."""
    graph = memory.graph
    types = [*(var.type for var in graph.inputs), *(atom.type for atom in graph.outputs)]
    parameters = [("ptr", f"p{number}") for number in range(len(types))]
    function = emission.module.function(name, [*parameters, ("ptr", "arena")], returns="i64")
    # Only the layouts of what is given matter, and the views of the graph know its strides.
    stored = [StoredArray.in_order(f"%{name}", type_) for (_, name), type_ in zip(parameters, types, strict=True)]
    given = len(graph.inputs)
    emit_graph(Emission(emission.module, function), memory, stored[:given], stored[given:], "%arena")
    function.give(0)
    return function.name


@dataclass(frozen=True, slots=True)
class _CarryPointers:
    """Pointers, in variables, to the current value of a carry, to where it is written next, and to where after that."""

    now: str
    next: str
    spare: str


class Carries:
    """The carries of a loop: two buffers each, which change places; the first step reads the operand itself."""

    def __init__(
        self, emission: Emission, starts: Sequence[StoredArray], types: Sequence[ArrayType], scratch: str
    ) -> None:
        self._emission = emission
        self._turning = []
        function, offset = emission.function, 0
        for start, type_ in zip(starts, types, strict=True):
            buffers = [function.element(scratch, offset + turn * room(type_), "i8") for turn in range(2)]
            offset += 2 * room(type_)
            first = start
            if not start.is_contiguous:  # into the buffer that the first step leaves alone
                first = StoredArray.in_order(buffers[1], type_)
                copy_into(emission, start, first)
            places = (first.pointer, *buffers)
            self._turning.append(_CarryPointers(*(function.slot("ptr", place) for place in places)))

    @staticmethod
    def nbytes(types: Sequence[ArrayType]) -> int:
        """Bytes of scratch memory for carries of these types."""
        return sum(2 * room(type_) for type_ in types)

    def now(self) -> list[str]:
        """Pointers to the current values."""
        return [self._emission.function.load("ptr", one.now) for one in self._turning]

    def following(self) -> list[str]:
        """Pointers to where the current step writes the next values."""
        return [self._emission.function.load("ptr", one.next) for one in self._turning]

    def turn(self, written: Sequence[str], elsewhere: Sequence[bool]) -> None:
        """Make the next values the current ones; what was written `elsewhere` has not used its buffers."""
        function = self._emission.function
        for one, place, is_elsewhere in zip(self._turning, written, elsewhere, strict=True):
            function.store("ptr", place, one.now)
            if not is_elsewhere:
                other = function.load("ptr", one.spare)
                function.store("ptr", other, one.next)
                function.store("ptr", place, one.spare)

    def finish(self, results: Sequence[StoredArray]) -> None:
        """Copy the final values to where they belong."""
        for place, result in zip(self.now(), results, strict=True):
            copy_bytes(self._emission, place, result)


def copy_bytes(emission: Emission, source: str, target: StoredArray) -> None:
    """Copy a value in C order."""
    nbytes = target.size * target.dtype.itemsize
    name = "llvm.memcpy.inline.p0.p0.i64" if nbytes <= _INLINE else "llvm.memcpy.p0.p0.i64"
    copy = emission.module.declare(name, "void", "ptr", "ptr", "i64", "i1 immarg")
    arguments = (("ptr", target.pointer), ("ptr", source), ("i64", nbytes), ("i1", "false"))
    emission.function.call("void", copy, *arguments)


#: Up to so many bytes are copied by a few instructions.
_INLINE = 64
