"""Which memory every value is computed into.

A *buffer* is one array of a plan. A value goes, in this order of preference,

1. into the memory of an operand that dies here, element for element (elementwise rules only),
2. into a buffer of its type that has become free,
3. into a buffer of its own.

Numbers (shape ()) are Python objects and need no buffer. Inputs and captures are the caller's and are never written to,
but for what in-place rules write and put back. What is returned gets memory that nothing else returned shares.
"""

from dataclasses import dataclass
from enum import Enum

from pullback.ir.graph import Graph, Node, Var
from pullback.ir.types import ArrayType
from pullback.planning.liveness import Liveness, analyse
from pullback.rules.indexing import add_at
from pullback.rules.inplace import copy
from pullback.rules.joining import concatenate
from pullback.rules.shapes import astype, broadcast_to


class Placement(Enum):
    """How a step gets the memory of its result."""

    NUMBER = "number"  # no array at all
    VIEW = "view"  # the memory of the first operand
    FRESH = "fresh"  # a new buffer, allocated by NumPy itself
    REUSED = "reused"  # a buffer whose value is dead
    IN_PLACE = "in place"  # the buffer of an operand that dies here


@dataclass(frozen=True, slots=True)
class Step:
    """A node with its memory."""

    node: Node
    placement: Placement
    buffer: int | None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A program with memory: steps in order, the types of the buffers, which outputs have to be copied on return."""

    graph: Graph
    steps: tuple[Step, ...]
    buffers: tuple[ArrayType, ...]
    copied_outputs: tuple[bool, ...]


def plan_memory(graph: Graph) -> Schedule:
    """Assign memory to every value of a graph."""
    liveness = analyse(graph)
    places: dict[Var, int] = {}  # root -> buffer
    buffers: list[ArrayType] = []
    free: list[int] = []
    steps: list[Step] = []
    for position, node in enumerate(graph.nodes):
        result = node.outputs[0]
        placement, buffer = _place(node, position, liveness, places, buffers, free)
        if placement is Placement.FRESH:
            buffer = len(buffers)
            buffers.append(result.type)
        if placement is Placement.REUSED and buffer is not None:
            free.remove(buffer)
        if buffer is not None:
            places[result] = buffer
        steps.append(Step(node, placement, buffer))
        _release(node, position, liveness, places, free)
    return Schedule(graph, tuple(steps), tuple(buffers), _copied_outputs(graph, liveness, places))


def _place(
    node: Node,
    position: int,
    liveness: Liveness,
    places: dict[Var, int],
    buffers: list[ArrayType],
    free: list[int],
) -> tuple[Placement, int | None]:
    result = node.outputs[0]
    if node.primitive.aliases_operand:
        return Placement.VIEW, None
    if not result.type.shape:
        return Placement.NUMBER, None
    if node.primitive.in_place or node.primitive is add_at:
        operand = _dying_operand(node, position, liveness, places, buffers)
        if operand is not None:
            return Placement.IN_PLACE, places[operand]
    if node.primitive.into is not None:
        for buffer in free:
            if buffers[buffer] == result.type:
                return Placement.REUSED, buffer
    return Placement.FRESH, None


def _dying_operand(
    node: Node, position: int, liveness: Liveness, places: dict[Var, int], buffers: list[ArrayType]
) -> Var | None:
    """An operand that is a whole buffer of the result's type, used for the last time, and read through no other view."""
    if node.primitive is not add_at and node.primitive.into is None:
        return None
    operands = [atom for atom in node.inputs if isinstance(atom, Var)]
    for operand in operands[:1] if node.primitive is add_at else operands:
        if operand not in places or buffers[places[operand]] != node.outputs[0].type:
            continue
        others = [other for other in operands if other is not operand]
        shared = any(liveness.root(other) is operand for other in others)
        if not shared and liveness.dies_at(operand, position):
            return operand
    return None


def _release(node: Node, position: int, liveness: Liveness, places: dict[Var, int], free: list[int]) -> None:
    """Free the buffers whose values were used for the last time by this node (or never will be)."""
    roots = {liveness.root(atom) for atom in (*node.inputs, *node.outputs) if isinstance(atom, Var)}
    for root in roots:
        if root in places and liveness.dies_at(root, position):
            buffer = places.pop(root)
            if buffer not in places.values():  # an in-place result lives on in it
                free.append(buffer)


def _copied_outputs(graph: Graph, liveness: Liveness, places: dict[Var, int]) -> tuple[bool, ...]:
    """Whether each output must be copied: it is the caller's own memory, stretched, or returned twice."""
    stretched: set[Var] = set()
    for node in graph.nodes:
        of_stretched = node.primitive.aliases_operand and node.inputs[0] in stretched
        if node.primitive is broadcast_to or of_stretched:
            stretched.add(node.outputs[0])
    returned: set[Var] = set()
    copied = []
    for atom in graph.outputs:
        if not isinstance(atom, Var) or not atom.type.shape:
            copied.append(False)
            continue
        root = liveness.root(atom)
        copied.append(root not in places or root in returned or atom in stretched)
        returned.add(root)
    return tuple(copied)


def summarise(schedule: Schedule) -> dict[str, int]:
    """What one call of the plan does, counted. A reshape is counted as a view; of some layouts NumPy makes a copy."""
    nodes = [step.node for step in schedule.steps]
    outputs = [
        atom.type.nbytes for atom, copied in zip(schedule.graph.outputs, schedule.copied_outputs, strict=True) if copied
    ]
    return {
        "arrays": len(schedule.buffers) + len(outputs),
        "bytes": sum(type_.nbytes for type_ in schedule.buffers) + sum(outputs),
        "copies": len(outputs) + sum(node.primitive in (copy, astype, concatenate) for node in nodes),
        "state_bytes": 0,
        "kernels": sum(
            step.placement is not Placement.VIEW or step.node.primitive.effect.writes for step in schedule.steps
        ),
        "flops": sum(node.primitive.flops([atom.type for atom in node.inputs], node.outputs[0].type) for node in nodes),
    }
