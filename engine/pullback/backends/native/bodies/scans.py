"""Scans: the body is a function of its own, called once a step with pointers into what is scanned.

consts  in place, in any layout
carry   as in `body_functions`; one that is collected too is written and read where it is collected
xs, ys  pointers to the step's part of the operand and of the result: nothing is copied

Of a body that is a few operations on a few numbers nothing is in memory but what is scanned: see `registers`. Loops over rows that
do not meet are cut into blocks of rows: see `row_blocks`.
"""

from collections.abc import Sequence
from dataclasses import replace

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import memory_type
from pullback.backends.native.bodies.body_functions import (
    Carries,
    memory_of,
    nbytes_of,
    rounded_up,
    why_not_steps,
    write_step,
)
from pullback.backends.native.emission import Emission, Site, StoredArray, emits, may_decline
from pullback.backends.native.kernels.registers import Registers, pays
from pullback.backends.native.kernels.row_blocks import blocks_of_rows
from pullback.backends.native.threads.sharing import share
from pullback.control.scan_rule import Layout, scan
from pullback.ir.graph import Graph, Node


def why_not_scanned(node: Node) -> str | None:
    """The part of the body that cannot be native, if any."""
    layout = Layout(dict(node.params))
    starts = {layout.body.inputs[number]: node.inputs[number] for number in layout.carry_inputs}
    reason = why_not_steps(layout.body, starts)
    if reason is not None:
        return f"scan, as {reason}"
    return None if layout.length else "scan of no steps"


def scratch_of_scan(node: Node, vector_bits: int) -> int:
    """The body's arena, and the buffers of the carry; those of each block of rows."""
    layout = Layout(dict(node.params))
    cut = blocks_of_rows(layout, vector_bits)
    if cut is None:
        return _nbytes_of(layout, vector_bits)
    blocks, body = cut
    return blocks * _nbytes_of(_with_body(layout, body), vector_bits)


def _nbytes_of(layout: Layout, vector_bits: int) -> int:
    carried = [layout.body.inputs[number].type for number in layout.carry_inputs]
    return rounded_up(nbytes_of(_own_outputs(layout), vector_bits)) + Carries.nbytes(carried)


def _with_body(layout: Layout, body: Graph) -> Layout:
    """The loop with a body of other types."""
    params = {name: getattr(layout, name) for name in ("consts", "carries", "length", "reverse")}
    return Layout({**params, "body": body})


def _own_outputs(layout: Layout) -> Graph:
    """The body without the outputs that are other outputs too."""
    kept = [atom for number, atom in enumerate(layout.body.outputs) if _collected(layout, number) is None]
    return replace(layout.body, outputs=tuple(kept))


def _collected(layout: Layout, number: int) -> int | None:
    """The result per step that an output of the carry is as well, if it is computed in the step."""
    atom = layout.body.outputs[number]
    made = any(atom in node.outputs for node in layout.body.nodes)
    if number >= layout.carries or not made:
        return None
    first = next((other for other in range(number) if layout.body.outputs[other] is atom), None)
    same = next((other for other in layout.y_outputs if layout.body.outputs[other] is atom), None)
    return same if first is None else None


@emits(scan, supports=why_not_scanned, scratch=scratch_of_scan)
def emit_scan(emission: Emission, node: Node, site: Site) -> None:
    """The loop, in the function that is open; a loop over a few numbers in a function of its own, all of it in registers."""
    layout = Layout(dict(node.params))
    if pays(layout.body, emission.vector_bits):
        _emit_in_registers(emission, layout, site.operands, site.results)
        return
    cut = blocks_of_rows(layout, emission.vector_bits)
    if cut is None:
        _write_loop(emission, layout, site.operands, site.results, site.scratch, can_fail=True)
    else:
        _emit_in_blocks(emission, layout, site.operands, site.results, site.scratch, *cut)


def _emit_in_blocks(
    emission: Emission,
    layout: Layout,
    operands: Sequence[StoredArray],
    results: Sequence[StoredArray],
    scratch: str,
    blocks: int,
    body: Graph,
) -> None:
    part = _with_body(layout, body)
    nbytes = _nbytes_of(part, emission.vector_bits)

    def build(function: Function, arguments: Sequence[str], block: Index) -> None:
        def rows_of(stored: StoredArray, pointer: str, axis: int) -> StoredArray:
            rows = stored.shape[axis] // blocks
            first = function.mul(function.mul(block, rows), stored.strides[axis])
            shape = (*stored.shape[:axis], rows, *stored.shape[axis + 1 :])
            return replace(stored, pointer=function.element(pointer, first, memory_type(stored.dtype)), shape=shape)

        *pointers, own = arguments
        given = []
        for number, (one, pointer) in enumerate(zip(operands, pointers, strict=False)):
            is_const = number in layout.const_inputs
            moved = replace(one, pointer=pointer) if is_const else rows_of(one, pointer, number in layout.x_inputs)
            given.append(moved)
        taken = [
            rows_of(one, pointer, number >= layout.carries)
            for number, (one, pointer) in enumerate(zip(results, pointers[len(operands) :], strict=True))
        ]
        memory = function.element(own, function.mul(block, nbytes), "i8")
        _write_loop(Emission(emission.module, function), part, given, taken, memory, can_fail=False)

    pointers = [stored.pointer for stored in (*operands, *results)]
    key = ("rows of a loop", len(emission.module.kernels))
    share(emission, key, "rows_of_loop", [*pointers, scratch], blocks, build)


def _write_loop(
    emission: Emission,
    layout: Layout,
    operands: Sequence[StoredArray],
    results: Sequence[StoredArray],
    scratch: str,
    *,
    can_fail: bool,
) -> None:
    """The loop over steps, in the function that is open."""
    function = emission.function
    types = [layout.body.inputs[number].type for number in layout.carry_inputs]
    starts = [operands[number] for number in layout.carry_inputs]
    entries = [replace(one, shape=one.shape[1:], strides=one.strides[1:]) for one in operands[layout.x_inputs.start :]]
    # Carries are in C order in every step, whatever they begin as.
    given = [*operands[: layout.consts], *(StoredArray.in_order("", type_) for type_ in types), *entries]
    memory = memory_of(_own_outputs(layout), given, emission.vector_bits)
    carries = Carries(emission, starts, types, function.element(scratch, rounded_up(memory.nbytes), "i8"))
    body = write_step(emission, memory, "step")
    collected = [_collected(layout, number) for number in range(layout.carries)]
    elsewhere = [output is not None for output in collected]
    with function.loop(0, layout.length) as turn:
        step = function.sub(layout.length - 1, turn) if layout.reverse else turn
        xs = [_entry(function, operands[number], step).pointer for number in layout.x_inputs]
        ys = [_entry(function, result, step).pointer for result in results[layout.carries :]]
        written = [
            place if output is None else ys[output - layout.carries]
            for place, output in zip(carries.following(), collected, strict=True)
        ]
        outputs = [place for place, is_elsewhere in zip(written, elsewhere, strict=True) if not is_elsewhere]
        consts = [operands[number].pointer for number in layout.const_inputs]
        arguments = [*consts, *carries.now(), *xs, *outputs, *ys, scratch]
        if can_fail:
            emission.attempt(body, *(("ptr", argument) for argument in arguments))
        else:
            function.call("i64", f"@{body}", *(("ptr", argument) for argument in arguments))
        carries.turn(written, elsewhere)
    carries.finish(results[: layout.carries])


def _emit_in_registers(
    emission: Emission, layout: Layout, operands: Sequence[StoredArray], results: Sequence[StoredArray]
) -> None:
    def build(function: Function, pointers: Sequence[str]) -> None:
        given = [replace(one, pointer=pointer) for one, pointer in zip(operands, pointers, strict=False)]
        taken = [replace(one, pointer=pointer) for one, pointer in zip(results, pointers[len(given) :], strict=True)]
        registers = Registers(function)
        consts = [registers.load(given[number]) for number in layout.const_inputs]
        carries = [registers.kept(registers.load(given[number]), given[number].dtype) for number in layout.carry_inputs]
        with function.loop(0, layout.length) as turn:
            step = function.sub(layout.length - 1, turn) if layout.reverse else turn
            held = [registers.held(slots, result.dtype) for slots, result in zip(carries, taken, strict=False)]
            xs = [registers.load(_entry(function, given[number], step)) for number in layout.x_inputs]
            after = registers.run(layout.body, [*consts, *held, *xs])
            for cells, result in zip(after[layout.carries :], taken[layout.carries :], strict=True):
                registers.store(cells, _entry(function, result, step))
            for cells, slots, result in zip(after, carries, taken, strict=False):
                registers.keep(cells, slots, result.dtype)
        for slots, result in zip(carries, taken, strict=False):
            registers.store(registers.held(slots, result.dtype), result)

    pointers = [stored.pointer for stored in (*operands, *results)]
    key = ("loop", len(emission.module.kernels))
    emission.kernel(key, "loop", pointers, build, can_fail=may_decline(layout.body))


def _entry(function: Function, stored: StoredArray, step: Index) -> StoredArray:
    """The part of a step."""
    place = function.mul(step, stored.strides[0])
    pointer = function.element(stored.pointer, place, memory_type(stored.dtype))
    return StoredArray(pointer, stored.shape[1:], stored.strides[1:], stored.dtype)
