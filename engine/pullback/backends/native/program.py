"""A graph as the text of a native program.

    define i64 @program(ptr %table)

The table has the pointers of the inputs and captures, of the outputs, and of the arena, in this order. What is returned is 0
where all went well; anything else means that these values cannot be computed here.
"""

from collections.abc import Sequence
from dataclasses import field, replace

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import memory_type, number
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.emission import EMITTERS, Emission, Site, StoredArray, may_decline
from pullback.backends.native.epilogues import epilogue_of
from pullback.backends.native.kernels.data_movement import copy_into, emit_joined
from pullback.backends.native.kernels.registers import Registers
from pullback.backends.native.kernels.shared_nests import emit_shared_nest
from pullback.backends.native.memory import Memory
from pullback.backends.nests.fusion import FusedNodes, ProductWithEpilogue, SingleNode
from pullback.backends.nests.joins_in_place import is_in_place, join_of
from pullback.backends.nests.nest import Nest, NestWrite, Step
from pullback.backends.nests.nest_building import Source, nest_of
from pullback.backends.nests.views import Access
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Literal, Var
from pullback.rules.activations import identity
from pullback.rules.joining import concatenate

#: Calls of kernels in one function. Of thousands, LLVM's register allocation takes time by their square, as what one saves
#: another reads much later: 1.9 s of 4,000 calls instead of 0.2.
MOST_CALLS = 128


@dataclass(frozen=True, slots=True)
class Places:
    """The pointers and layouts of the values of a graph while it is emitted."""

    emission: Emission
    memory: Memory
    given: dict[Var, StoredArray]
    outputs: Sequence[StoredArray]
    arena: str
    _inside: dict[int, str] = field(default_factory=dict)

    def root(self, atom: Atom) -> str:
        """The pointer of what is no view."""
        if isinstance(atom, Literal):
            return _constant(self.emission.module, atom)
        if atom in self.given:
            return self.given[atom].pointer
        if atom in self.memory.returned:
            return self.outputs[self.memory.returned[atom]].pointer
        return self.inside(self.memory.offsets[atom])

    def inside(self, offset: int) -> str:
        """A pointer into the arena; the same name for the same place, so that kernels see what lies where they write."""
        if offset not in self._inside:
            self._inside[offset] = self.emission.function.element(self.arena, offset, "i8")
        return self._inside[offset]

    def first(self, access: Access) -> str:
        """The pointer of the first element of a value."""
        type_ = memory_type(access.root.type.dtype)
        return self.emission.function.element(self.root(access.root), access.offset, type_)

    def stored(self, atom: Atom) -> StoredArray:
        """A value as kernels take it."""
        access = self.memory.kernels.views.access(atom)
        return StoredArray(self.first(access), atom.type.shape, access.strides, atom.type.dtype)


def emit_graph(
    emission: Emission, memory: Memory, inputs: Sequence[StoredArray], outputs: Sequence[StoredArray], arena: str
) -> None:
    """Emit calls of the kernels of a graph into the function that is open, from and to values that are in C order."""
    graph = memory.graph
    variables = (*graph.inputs, *(capture.var for capture in graph.captures))
    if memory.in_registers:
        _emit_in_registers(emission, memory, inputs, outputs)
        return
    places = Places(emission, memory, dict(zip(variables, inputs, strict=True)), outputs, arena)
    for position in range(len(memory.kernels.kernels)):
        _emit_kernel(places, position)
    _emit_copies(places)


def _emit_kernel(places: Places, position: int) -> None:
    memory = places.memory
    kernel = memory.kernels.kernels[position]
    if isinstance(kernel, ProductWithEpilogue):
        _emit_with_epilogue(kernel, places, position)
    elif isinstance(kernel, FusedNodes):
        copied = join_of(kernel)
        if copied is None or not is_in_place(copied, 0, memory.kernels.views):
            nest, operands = nest_of(kernel, memory.kernels.views, memory.kept)
            emit_shared_nest(places.emission, nest, [places.first(operand) for operand in operands])
    else:
        _emit_alone(kernel, places, position)


def _emit_copies(places: Places) -> None:
    memory = places.memory
    for position in memory.copied:
        _emit_copy(memory.graph.outputs[position], places.outputs[position], places)


def _emit_in_registers(
    emission: Emission, memory: Memory, inputs: Sequence[StoredArray], outputs: Sequence[StoredArray]
) -> None:
    views, graph = memory.kernels.views, memory.graph
    variables = (*graph.inputs, *(capture.var for capture in graph.captures))
    given = [replace(one, strides=views.access(var).strides) for one, var in zip(inputs, variables, strict=True)]

    def build(function: Function, pointers: Sequence[str]) -> None:
        registers = Registers(function)
        taken = [replace(one, pointer=pointer) for one, pointer in zip((*given, *outputs), pointers, strict=True)]
        read = [registers.load(one) for one in taken[: len(given)]]
        values = registers.run(replace(graph, inputs=variables, captures=()), read)
        for cells, one in zip(values, taken[len(given) :], strict=True):
            registers.store(cells, one)

    pointers = [one.pointer for one in (*given, *outputs)]
    key = ("registers", len(emission.module.kernels))
    emission.kernel(key, "registers", pointers, build, can_fail=may_decline(graph))


def emit_program(memory: Memory, vector_bits: int) -> Module:
    """The module of a graph with `@program` in it."""
    module = Module(vector_bits)
    function = module.function("program", [("ptr", "table")], returns="i64", internal=False)
    count = len(memory.kernels.kernels)
    if memory.in_registers or count <= MOST_CALLS:
        emit_graph(Emission(module, function), memory, *_from_table(function, memory))
    else:
        emission = Emission(module, function)
        for first in range(0, count, MOST_CALLS):
            part = module.function("part", [("ptr", "table")], returns="i64")
            places = _places(Emission(module, part), memory)
            for position in range(first, min(first + MOST_CALLS, count)):
                _emit_kernel(places, position)
            part.give(0)
            emission.attempt(part.name, ("ptr", "%table"))
        if memory.copied:
            _emit_copies(_places(emission, memory))
    function.give(0)
    return module


def _places(emission: Emission, memory: Memory) -> Places:
    inputs, outputs, arena = _from_table(emission.function, memory)
    variables = (*memory.graph.inputs, *(capture.var for capture in memory.graph.captures))
    return Places(emission, memory, dict(zip(variables, inputs, strict=True)), outputs, arena)


def _from_table(function: Function, memory: Memory) -> tuple[list[StoredArray], list[StoredArray], str]:
    """The pointers of the table of a graph, read in a function that is open: inputs and captures, outputs, the arena."""
    graph = memory.graph
    types = [
        *(var.type for var in graph.inputs),
        *(capture.var.type for capture in graph.captures),
        *(atom.type for atom in graph.outputs),
    ]
    pointers = [
        function.load("ptr", function.element("%table", position, "ptr"), align=8)
        for position in range(len(types) + (memory.nbytes > 0))
    ]
    stored = [StoredArray.in_order(pointer, type_) for pointer, type_ in zip(pointers, types, strict=False)]
    given = len(graph.inputs) + len(graph.captures)
    # A program without inputs and outputs has no pointers.
    return stored[:given], stored[given:], pointers[-1] if memory.nbytes else "null"


def _constant(module: Module, literal: Literal) -> str:
    type_ = memory_type(literal.type.dtype)
    text = number(literal.value, literal.type.dtype)
    return module.constant(type_, {"true": "1", "false": "0"}.get(text, text))


def _emit_alone(kernel: SingleNode, places: Places, position: int) -> None:
    node, memory = kernel.node, places.memory
    operands = [places.stored(atom) for atom in node.inputs]
    results = [places.stored(var) for var in node.outputs]
    if node.primitive is concatenate:
        views = memory.kernels.views
        left = [number for number in range(len(operands)) if not is_in_place(node, number, views)]
        emit_joined(places.emission, node, operands, results[0], left)
        return
    scratch = places.inside(memory.scratch[position]) if position in memory.scratch else "null"
    EMITTERS[node.primitive].emit(places.emission, node, Site(operands, results, scratch))


def _emit_with_epilogue(kernel: ProductWithEpilogue, places: Places, position: int) -> None:
    from pullback.backends.native.kernels.epilogue import emit_with_epilogue  # noqa: PLC0415 - 20 ms that products alone pay

    memory = places.memory
    placed = epilogue_of(kernel, memory.kernels.views, memory.kept)
    factors = [places.stored(atom).pointer for atom in kernel.product.inputs]
    operands = [None if access.root in kernel.product.outputs else places.first(access) for access in placed.operands]
    room = places.inside(memory.scratch[position]) if position in memory.scratch else "null"
    emit_with_epilogue(places.emission, placed.epilogue, factors, operands, room)


def _emit_copy(atom: Atom, output: StoredArray, places: Places) -> None:
    """Copy to an output that is the memory of another value."""
    access = places.memory.kernels.views.access(atom)
    if output.dtype.kind == "c":  # all of its memory: views are of parts
        type_ = ArrayType((*output.shape, 2), access.dtype)
        copy_into(places.emission, *(StoredArray.in_order(at, type_) for at in (places.first(access), output.pointer)))
        return
    source = Source()
    value = source.read(access, atom.type.shape, output.shape)
    steps = (Step(identity, (value,), (output.dtype,), output.dtype),)
    writes = (NestWrite(len(source.reads), len(source.operands), output.strides, output.dtype),)
    nest = Nest(output.shape, tuple(source.reads), steps, writes, ())
    emit_shared_nest(places.emission, nest, [*map(places.first, source.operands), output.pointer])
