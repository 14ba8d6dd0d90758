"""Loops: the body of a scan is a function of its own, called once a step with pointers into what is scanned.

consts  where they are and as they lie: a transposed matrix is none the worse for it
carry   two buffers each, which change places after every step; the first step reads the operand itself
xs, ys  pointers to the step's part of the operand and of the result: nothing is copied
body    its own kernels and its own part of the arena, used again in every step
"""

from collections.abc import Sequence

from pullback.backends.native.emission import Emission, Stored, emits
from pullback.backends.native.kernels.moving import copy_into
from pullback.backends.native.memory import Memory, plan_memory
from pullback.backends.native.program import emit_graph
from pullback.backends.native.support import why_not
from pullback.backends.native.writing.lanes import memory_type
from pullback.control.scan_rule import Layout, scan
from pullback.ir.graph import Node
from pullback.ir.types import ArrayType
from pullback.planning.arena import ALIGNMENT


def why_not_scanned(node: Node) -> str | None:
    """The first node of the body that cannot be native, if there is one."""
    layout = Layout(dict(node.params))
    reasons = (why_not(inner) for inner in layout.body.nodes)
    reason = next((reason for reason in reasons if reason is not None), None)
    if reason is not None:
        return f"scan, as {reason}"
    return None if layout.length else "scan of no steps"


def scratch_of_scan(node: Node, vector_bits: int) -> int:
    """The body's arena, and two buffers a carry."""
    layout = Layout(dict(node.params))
    memory = plan_memory(layout.body, vector_bits)
    return memory.nbytes + 2 * sum(_room(layout.body.inputs[number].type) for number in layout.carry_inputs)


def _room(type_: ArrayType) -> int:
    return -(-max(type_.nbytes, 1) // ALIGNMENT) * ALIGNMENT


@emits(scan, supports=why_not_scanned, scratch=scratch_of_scan)
def emit_scan(
    emission: Emission, node: Node, operands: Sequence[Stored], results: Sequence[Stored], scratch: str
) -> None:
    """The loop, in the function that is open."""
    function = emission.function
    layout = Layout(dict(node.params))
    inputs = layout.body.inputs
    strides = {inputs[number]: operands[number].strides for number in layout.const_inputs}
    strides |= {inputs[number]: operands[number].strides[1:] for number in layout.x_inputs}
    memory = plan_memory(layout.body, emission.vector_bits, strides)
    consts = [operands[number].pointer for number in layout.const_inputs]
    offset = memory.nbytes
    slots = []
    for number in layout.carry_inputs:
        type_, start = inputs[number].type, operands[number]
        buffers = [function.element(scratch, offset + turn * _room(type_), "i8") for turn in range(2)]
        offset += 2 * _room(type_)
        if not start.is_contiguous:  # the buffer that the first step leaves alone
            held = Stored.in_order(buffers[1], type_)
            copy_into(emission, start, held)
            start = held
        slots.append(
            (function.slot("ptr", start.pointer), function.slot("ptr", buffers[0]), function.slot("ptr", buffers[1]))
        )
    body = _body(emission, layout, memory)
    with function.loop(0, layout.length) as turn:
        step = function.sub(layout.length - 1, turn) if layout.reverse else turn
        now = [function.load("ptr", slot) for slot, _, _ in slots]
        following = [function.load("ptr", slot) for _, slot, _ in slots]
        xs = [_row(emission, operands[number], step) for number in layout.x_inputs]
        ys = [_row(emission, result, step) for result in results[layout.carries :]]
        arguments = [*consts, *now, *xs, *following, *ys, scratch]
        function.call("void", f"@{body}", *(("ptr", argument) for argument in arguments))
        for (current, next_, spare), written in zip(slots, following, strict=True):
            other = function.load("ptr", spare)
            function.store("ptr", written, current)
            function.store("ptr", other, next_)
            function.store("ptr", written, spare)
    for (current, _, _), result in zip(slots, results, strict=False):
        last = function.load("ptr", current)
        nbytes = result.size * result.dtype.itemsize
        copy = emission.module.declare("llvm.memcpy.inline.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1 immarg")
        if nbytes > 64:
            copy = emission.module.declare("llvm.memcpy.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1 immarg")
        function.call("void", copy, ("ptr", result.pointer), ("ptr", last), ("i64", nbytes), ("i1", "false"))


def _row(emission: Emission, stored: Stored, step: int | str) -> str:
    """The part of a step."""
    function = emission.function
    return function.element(stored.pointer, function.mul(step, stored.strides[0]), memory_type(stored.dtype))


def _body(emission: Emission, layout: Layout, memory: Memory) -> str:
    """A function of the body's inputs, its outputs, and its arena; gives its name."""
    body = layout.body
    types = [*(var.type for var in body.inputs), *(atom.type for atom in body.outputs)]
    parameters = [("ptr", f"p{number}") for number in range(len(types))]
    function = emission.module.function("step", [*parameters, ("ptr", "arena")])
    # Where something lies is all that counts of what is given: its strides are known to the views of the body.
    stored = [Stored.in_order(f"%{name}", type_) for (_, name), type_ in zip(parameters, types, strict=True)]
    given = len(body.inputs)
    emit_graph(Emission(emission.module, function), memory, stored[:given], stored[given:], "%arena")
    return function.name
