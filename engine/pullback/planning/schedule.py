"""Assignment of memory to values.

A *buffer* is one array of a plan. A value goes, in this order of preference,

1. into the memory of an operand that dies here, element for element (elementwise rules only),
2. into a buffer of its type that has become free,
3. into a buffer of its own.

In a plan that makes its memory anew on each call a buffer of its own is what NumPy allocates, and numbers (shape ()) are
Python objects and need none. In a plan that keeps its memory between calls (`kept`) buffers exist before the first step,
numbers with a dtype live in buffers of shape (), and only rules that cannot write into an array still allocate.

Inputs and captures are the caller's and are never written to, but for what in-place rules write and put back, and for
inputs that are said to be `owned`. What is returned gets memory that nothing else returned shares.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable
from dataclasses import field
from enum import Enum

from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.planning.liveness import Liveness, analyse
from pullback.rules.inplace import copy
from pullback.rules.joining import concatenate
from pullback.rules.shapes import astype, broadcast_to
from pullback.rules.storing import STORES


class Placement(Enum):
    """Kinds of memory that the result of a step can get."""

    NUMBER = "number"  # no array at all
    VIEW = "view"  # the memory of the first operand
    FRESH = "fresh"  # a new buffer, allocated by NumPy itself
    KEPT = "kept"  # a new buffer that was there before the call
    REUSED = "reused"  # a buffer whose value is dead
    IN_PLACE = "in place"  # the buffer of an operand that dies here


#: Placements whose step writes into an array that is there already.
WRITTEN = frozenset({Placement.KEPT, Placement.REUSED, Placement.IN_PLACE})


@dataclass(frozen=True, slots=True)
class Place:
    """The memory of one result."""

    placement: Placement
    buffer: int | None


@dataclass(frozen=True, slots=True)
class Step:
    """A node with its memory: a place for each result, and scratch buffers."""

    node: Node
    places: tuple[Place, ...]
    scratch: tuple[int, ...] = ()
    freed: tuple[int, ...] = ()
    """The buffers whose last value is dead after this step."""

    @property
    def placement(self) -> Placement:
        """The placement of the first result, which is mostly the only one."""
        return self.places[0].placement

    @property
    def buffer(self) -> int | None:
        """The buffer of the first result."""
        return self.places[0].buffer


@dataclass(frozen=True, slots=True)
class Schedule:
    """A program with memory: steps in order, the types of the buffers, which outputs have to be copied on return."""

    graph: Graph
    steps: tuple[Step, ...]
    buffers: tuple[ArrayType, ...]
    copied_outputs: tuple[bool, ...]
    kept: frozenset[int]
    """The buffers that live in the plan's state; NumPy allocates the others."""
    owned: tuple[int, ...]
    """The inputs that may be written to after their last use; the first buffers are theirs."""
    output_buffers: tuple[int | None, ...]
    """The buffer that each output uses or is copied into; None for numbers, and for copies made by NumPy."""

    @property
    def kept_types(self) -> dict[int, ArrayType]:
        """The types of the kept buffers."""
        return {buffer: self.buffers[buffer] for buffer in self.kept}


@dataclass
class _Memory:
    """The assignment while it is being made."""

    graph: Graph
    liveness: Liveness
    keeps: bool
    places: dict[Var, int] = field(default_factory=dict)  # root -> buffer
    buffers: list[ArrayType] = field(default_factory=list)
    free: dict[ArrayType, deque[int]] = field(default_factory=lambda: defaultdict(deque))
    holders: Counter[int] = field(default_factory=Counter)
    """The number of values in each buffer: two while a result is computed in place."""
    kept: set[int] = field(default_factory=set)

    def new(self, type_: ArrayType, *, kept: bool) -> int:
        self.buffers.append(type_)
        number = len(self.buffers) - 1
        if kept:
            self.kept.add(number)
        return number

    def put(self, value: Var, buffer: int) -> None:
        self.places[value] = buffer
        self.holders[buffer] += 1

    def take_free(self, type_: ArrayType) -> int | None:
        """The buffer of this type that has been free for longest."""
        free = self.free[type_]
        return free.popleft() if free else None

    def give_free(self, buffers: Iterable[int]) -> None:
        for buffer in buffers:
            self.free[self.buffers[buffer]].append(buffer)

    def place(self, node: Node, position: int, result: Var) -> Place:
        primitive = node.primitive
        if primitive.aliases_operand:
            return Place(Placement.VIEW, None)
        writes = primitive.into is not None
        if not result.type.shape and not (self.keeps and writes and not result.type.weak):
            return Place(Placement.NUMBER, None)
        types = [atom.type for atom in node.inputs]
        if len(node.outputs) == 1 and (primitive.writes_over(*types, **dict(node.params)) or primitive in STORES):
            operand = self.dying_operand(node, position)
            if operand is not None:
                return Place(Placement.IN_PLACE, self.places[operand])
        # A rule of several results writes into arrays that are there, or makes them all itself.
        if writes and (len(node.outputs) == 1 or self.keeps):
            buffer = self.take_free(result.type)
            if buffer is not None:
                return Place(Placement.REUSED, buffer)
        if writes and self.keeps:
            return Place(Placement.KEPT, self.new(result.type, kept=True))
        return Place(Placement.FRESH, self.new(result.type, kept=False))

    def dying_operand(self, node: Node, position: int) -> Var | None:
        """An operand that is a whole buffer of the result's type, used for the last time, and read through no other view."""
        if node.primitive not in STORES and node.primitive.into is None:
            return None
        operands = [atom for atom in node.inputs if isinstance(atom, Var)]
        for operand in operands[:1] if node.primitive in STORES else operands:
            if operand not in self.places or self.buffers[self.places[operand]] != node.outputs[0].type:
                continue
            others = [other for other in operands if other is not operand]
            # A store by a basic key may read what it writes: NumPy looks whether they overlap.
            looks = node.primitive in STORES and len(node.inputs) == 2
            shared = not looks and any(self.liveness.root(other) is operand for other in others)
            if not shared and self.liveness.dies_at(operand, position):
                return operand
        return None

    def scratch(self, node: Node) -> tuple[int, ...]:
        """Buffers for what a rule needs while it writes; free again after it."""
        taken: list[int] = []
        for type_ in node.primitive.scratch(*(atom.type for atom in node.inputs), **dict(node.params)):
            buffer = self.take_free(type_)
            taken.append(self.new(type_, kept=self.keeps) if buffer is None else buffer)
        return tuple(taken)

    def release(self, node: Node, position: int) -> list[int]:
        """Free the buffers whose values were used for the last time by this node (or never will be)."""
        freed = []
        atoms = [atom for atom in (*node.inputs, *node.outputs) if isinstance(atom, Var)]
        for root in dict.fromkeys(self.liveness.root(atom) for atom in atoms):
            if root in self.places and self.liveness.dies_at(root, position):
                buffer = self.places.pop(root)
                self.holders[buffer] -= 1
                if not self.holders[buffer]:  # else an in-place result lives on in it
                    freed.append(buffer)
        self.give_free(freed)
        return freed


def plan_memory(graph: Graph, *, kept: bool = False, owned: Collection[int] = ()) -> Schedule:
    """Assign memory to every value of a graph.

    `owned` are positions of inputs that are arrays of their own memory and may be written to after their last use.
    """
    memory = _Memory(graph, analyse(graph), kept)
    for position in owned:
        var = graph.inputs[position]
        memory.put(var, memory.new(var.type, kept=False))
    steps: list[Step] = []
    for position, node in enumerate(graph.nodes):
        places = tuple(memory.place(node, position, result) for result in node.outputs)
        scratch = memory.scratch(node) if any(place.placement in WRITTEN for place in places) else ()
        for result, place in zip(node.outputs, places, strict=True):
            if place.buffer is not None:
                memory.put(result, place.buffer)
        memory.give_free(scratch)
        freed = memory.release(node, position)
        steps.append(Step(node, places, scratch, (*scratch, *freed)))
    copied = _copied_outputs(graph, memory)
    outputs = tuple(
        _output_buffer(atom, memory, is_copied=is_copied) for atom, is_copied in zip(graph.outputs, copied, strict=True)
    )
    return Schedule(graph, tuple(steps), tuple(memory.buffers), copied, frozenset(memory.kept), tuple(owned), outputs)


def _copied_outputs(graph: Graph, memory: _Memory) -> tuple[bool, ...]:
    """Copies of outputs, True for each that must be copied: it is the caller's, stretched, a view of a number, or a duplicate."""
    stretched: set[Var] = set()
    for node in graph.nodes:
        if node.primitive is broadcast_to or (
            node.primitive.aliases_operand and (node.inputs[0] in stretched or _is_element(node.inputs[0], memory))
        ):
            stretched.update(node.outputs)
    returned: set[Var] = set()
    copied = []
    for atom in graph.outputs:
        if not isinstance(atom, Var) or not atom.type.shape:
            copied.append(False)
            continue
        root = memory.liveness.root(atom)
        copied.append(root not in memory.places or root in returned or atom in stretched)
        returned.add(root)
    return tuple(copied)


def _is_element(atom: Atom, memory: _Memory) -> bool:
    """True if an atom is one element of an array: a number, which is in kept memory only for as long as a call takes."""
    return memory.keeps and isinstance(atom, Var) and not atom.type.shape and memory.liveness.root(atom) is not atom


def _output_buffer(atom: Atom, memory: _Memory, *, is_copied: bool) -> int | None:
    if not isinstance(atom, Var) or not atom.type.shape:
        return None
    if is_copied:
        return memory.new(atom.type, kept=True) if memory.keeps else None
    return memory.places[memory.liveness.root(atom)]


def transient(schedule: Schedule) -> list[str]:
    """The rules that make intermediate arrays although the plan keeps its memory: none of them can write into one.

    Also NumPy itself buffers what it has to cast, in memory that is not an array's.
    """
    names = {
        step.node.primitive.name
        for step in schedule.steps
        if any(place.placement is Placement.FRESH for place in step.places) or _makes_arrays(step.node)
    }
    bodies = [body for step in schedule.steps for _, body in step.node.bodies()]
    return sorted(names.union(*(transient(plan_memory(body, kept=True)) for body in bodies)))


def _makes_arrays(node: Node) -> bool:
    return node.primitive.makes_arrays(*(atom.type for atom in node.inputs), **dict(node.params))


def flops_of(node: Node) -> int:
    """Operations of a node, with all steps of a loop, one step of a while loop, and the longest of its branches."""
    inside = [sum(map(flops_of, body.nodes)) for _, body in node.bodies()]
    own = node.primitive.flops([atom.type for atom in node.inputs], node.outputs[0].type)
    steps: int = dict(node.params).get("length", 1)
    return own + steps * max(inside, default=0)


def _copies(step: Step) -> bool:
    """True if a step moves an array to other memory: stores do where they cannot write into what they are given."""
    if step.node.primitive in STORES:
        return step.placement is not Placement.IN_PLACE
    return step.node.primitive in (copy, astype, concatenate)


def summarise(schedule: Schedule) -> dict[str, int]:
    """Counts of one call of the plan. A reshape is counted as a view; of some layouts NumPy makes a copy."""
    nodes = [step.node for step in schedule.steps]
    copies = [
        atom.type.nbytes for atom, copied in zip(schedule.graph.outputs, schedule.copied_outputs, strict=True) if copied
    ]
    fresh = [
        type_.nbytes
        for number, type_ in enumerate(schedule.buffers)
        if number >= len(schedule.owned) and number not in schedule.kept
    ]
    made = [] if schedule.kept else copies  # a plan that keeps its memory copies into kept arrays
    return {
        "arrays": len(fresh) + len(made),
        "bytes": sum(fresh) + sum(made),
        "copies": len(copies) + sum(map(_copies, schedule.steps)),
        "state_bytes": sum(schedule.buffers[number].nbytes for number in schedule.kept),
        "kernels": sum(
            step.placement is not Placement.VIEW or step.node.primitive.effect.writes for step in schedule.steps
        ),
        "flops": sum(map(flops_of, nodes)),
    }
