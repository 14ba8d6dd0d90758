"""A graph as the text of a native program.

    define i64 @program(ptr %table)

The table has the pointers of the inputs and captures, of the outputs, and of the arena, in this order. What is returned is 0
where all went well; anything else says that these values cannot be computed here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pullback.backends.native.emission import EMITTERS, Emission, Stored, contiguous_strides
from pullback.backends.native.fusing import COPIES, REDUCTIONS, Alone, Fused, loop_dtypes, reduced_axes
from pullback.backends.native.joining import is_in_place, join_of
from pullback.backends.native.kernels.moving import emit_joined
from pullback.backends.native.kernels.nest import Constant, Nest, Read, Reduction, Step, Write
from pullback.backends.native.kernels.registers import Registers
from pullback.backends.native.kernels.shared_nests import emit_shared_nest
from pullback.backends.native.memory import Memory
from pullback.backends.native.views import Access
from pullback.backends.native.writing.function import Function
from pullback.backends.native.writing.lanes import memory_type, number
from pullback.backends.native.writing.module import Module
from pullback.ir.graph import Atom, Literal, Node, Var
from pullback.ir.types import Shape
from pullback.rules.activations import identity
from pullback.rules.joining import concatenate


@dataclass(frozen=True, slots=True)
class Places:
    """Where the values of a graph are while it is emitted."""

    emission: Emission
    memory: Memory
    given: dict[Var, Stored]
    outputs: Sequence[Stored]
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

    def stored(self, atom: Atom) -> Stored:
        """A value as kernels take it."""
        access = self.memory.kernels.views.access(atom)
        return Stored(self.first(access), atom.type.shape, access.strides, atom.type.dtype)


def emit_graph(
    emission: Emission, memory: Memory, inputs: Sequence[Stored], outputs: Sequence[Stored], arena: str
) -> None:
    """Emit calls of the kernels of a graph into the function that is open, from and to values that are in C order."""
    graph = memory.graph
    variables = (*graph.inputs, *(capture.var for capture in graph.captures))
    if memory.in_registers:
        _emit_in_registers(emission, memory, inputs, outputs)
        return
    places = Places(emission, memory, dict(zip(variables, inputs, strict=True)), outputs, arena)
    for position, kernel in enumerate(memory.kernels.kernels):
        if isinstance(kernel, Fused):
            copied = join_of(kernel)
            if copied is None or not is_in_place(copied, 0, memory.kernels.views):
                _emit_fused(kernel, places)
        else:
            _emit_alone(kernel, places, position)
    for position in memory.copied:
        _emit_copy(graph.outputs[position], outputs[position], places)


def _emit_in_registers(emission: Emission, memory: Memory, inputs: Sequence[Stored], outputs: Sequence[Stored]) -> None:
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
    emission.kernel(("registers", len(emission.module.kernels)), "registers", pointers, build)


def emit_program(memory: Memory, vector_bits: int, name: str = "program") -> Module:
    """The module of a graph with `@program` in it."""
    module = Module(vector_bits)
    function = module.function(name, [("ptr", "table")], returns="i64", internal=False)
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
    stored = [Stored.in_order(pointer, type_) for pointer, type_ in zip(pointers, types, strict=False)]
    given = len(graph.inputs) + len(graph.captures)
    emit_graph(Emission(module, function), memory, stored[:given], stored[given:], pointers[-1])
    function.give(0)
    return module


def _constant(module: Module, literal: Literal) -> str:
    type_ = memory_type(literal.type.dtype)
    text = number(literal.value, literal.type.dtype)
    return module.constant(type_, {"true": "1", "false": "0"}.get(text, text))


def _emit_alone(kernel: Alone, places: Places, position: int) -> None:
    node, memory = kernel.node, places.memory
    operands = [places.stored(atom) for atom in node.inputs]
    results = [places.stored(var) for var in node.outputs]
    if node.primitive is concatenate:
        views = memory.kernels.views
        left = [number for number in range(len(operands)) if not is_in_place(node, number, views)]
        emit_joined(places.emission, node, operands, results[0], left)
        return
    scratch = places.inside(memory.scratch[position]) if position in memory.scratch else "null"
    EMITTERS[node.primitive].emit(places.emission, node, operands, results, scratch)


def _emit_copy(atom: Atom, output: Stored, places: Places) -> None:
    """An output that is memory of somebody else."""
    access = places.memory.kernels.views.access(atom)
    source = _Source(places)
    value = source.read(access, atom.type.shape, output.shape)
    steps = (Step(identity, (value,), (output.dtype,), output.dtype),)
    writes = (Write(len(source.reads), len(source.pointers), output.strides, output.dtype),)
    nest = Nest(output.shape, tuple(source.reads), steps, writes, ())
    emit_shared_nest(places.emission, nest, [*source.pointers, output.pointer])


class _Source:
    """The reads of a nest, each place of memory once."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._numbers: dict[tuple[Atom, int, tuple[int, ...]], int] = {}
        self._pointers: dict[tuple[Atom, int], int] = {}
        self.reads: list[Read] = []
        self.pointers: list[str] = []

    def read(self, access: Access, shape: Shape, space: Shape) -> int | Constant:
        """The number of a value that is read, or the number that it is."""
        if isinstance(access.root, Literal):
            return Constant(access.root.value)
        strides = access.over(shape, space)
        key = (access.root, access.offset, strides)
        if key not in self._numbers:
            place = self._pointers.get(key[:2])
            if place is None:
                place = self._pointers[key[:2]] = len(self.pointers)
                self.pointers.append(self._places.first(access))
            self._numbers[key] = len(self.reads)
            self.reads.append(Read(place, strides, access.root.type.dtype))
        return self._numbers[key]


def _emit_fused(kernel: Fused, places: Places) -> None:
    views, space = places.memory.kernels.views, kernel.space
    source = _Source(places)
    numbers: dict[Var, int] = {}
    for atom in (atom for node in kernel.nodes for atom in node.inputs):
        if isinstance(atom, Var) and atom not in kernel.values:
            read = source.read(views.access(atom), atom.type.shape, space)
            if isinstance(read, int):
                numbers[atom] = read

    def value_of(atom: Atom) -> int | Constant:  # a dict would take 0.0 for -0.0
        if isinstance(atom, Var) and atom in numbers:
            return numbers[atom]
        root = views.access(atom).root
        assert isinstance(root, Literal)  # noqa: S101 - everything else is read above
        return Constant(root.value)

    steps: list[Step] = []
    writes: list[Write] = []
    reduced: list[Reduction] = []
    pointers = list(source.pointers)
    for node in kernel.nodes:
        result = node.outputs[0]
        if node.primitive in REDUCTIONS:
            value = value_of(node.inputs[0])
            if isinstance(value, Constant):  # a number that is stretched and summed
                value = _number_of(steps, source, Step(identity, (value,), (result.type.dtype,), result.type.dtype))
            reduced.append(_reduction(node, value, len(pointers), space))
            pointers.append(places.first(views.access(result)))
            continue
        numbers[result] = _number_of(steps, source, _step(node, [value_of(atom) for atom in node.inputs]))
        if result in places.memory.kept:
            access = views.access(result)
            writes.append(Write(numbers[result], len(pointers), access.strides, result.type.dtype))
            pointers.append(places.first(access))
    nest = Nest(space, tuple(source.reads), tuple(steps), tuple(writes), tuple(reduced))
    emit_shared_nest(places.emission, nest, pointers)


def _number_of(steps: list[Step], source: _Source, step: Step) -> int:
    steps.append(step)
    return len(source.reads) + len(steps) - 1


def _step(node: Node, values: Sequence[int | Constant]) -> Step:
    result, operands = node.outputs[0].type, tuple(values)
    if node.primitive in COPIES:
        return Step(identity, operands, (result.dtype,), result.dtype)
    return Step(node.primitive, operands, loop_dtypes(node), result.dtype, node.params)


def _reduction(node: Node, value: int, pointer: int, space: Shape) -> Reduction:
    axes = reduced_axes(node)
    result = node.outputs[0].type
    own = iter(contiguous_strides(tuple(size for axis, size in enumerate(space) if axis not in axes)))
    strides = tuple(0 if axis in axes else next(own) for axis in range(len(space)))
    return Reduction(value, REDUCTIONS[node.primitive], axes, pointer, strides, result.dtype)
