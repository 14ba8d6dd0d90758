"""Loops that go on as long as a condition holds: condition and body are functions of their own.

A loop over a few numbers is wholly in registers, as scans are.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.native.bodies.body_functions import (
    Carries,
    memory_of,
    nbytes_of,
    room,
    why_not_steps,
    write_step,
)
from pullback.backends.native.emission import Emission, Site, StoredArray, emits, may_decline
from pullback.backends.native.kernels.registers import Cells, Registers, pays
from pullback.control.while_rule import while_
from pullback.core.types import ArrayType
from pullback.ir.graph import Graph, Node


def _parts(node: Node) -> tuple[Graph, Graph, int]:
    params = dict(node.params)
    return params["condition"], params["body"], params["consts"]


def _why_not(node: Node) -> str | None:
    condition, body, consts = _parts(node)
    starts = dict(zip(body.inputs[consts:], node.inputs[consts:], strict=True))
    reason = why_not_steps(condition) or why_not_steps(body, starts)
    return None if reason is None else f"while, as {reason}"


def _scratch(node: Node, vector_bits: int) -> int:
    condition, body, consts = _parts(node)
    arena = max(nbytes_of(condition, vector_bits), nbytes_of(body, vector_bits))
    return room(_ANSWER) + arena + Carries.nbytes([var.type for var in body.inputs[consts:]])


#: The dtype of what a condition gives.
_ANSWER = ArrayType((), np.dtype(bool))


@emits(while_, supports=_why_not, scratch=_scratch)
def _emit_while(emission: Emission, node: Node, site: Site) -> None:
    condition, body, consts = _parts(node)
    function = emission.function
    if pays(condition, emission.vector_bits) and pays(body, emission.vector_bits):
        _emit_in_registers(emission, node, site.operands, site.results)
        return
    types = [var.type for var in body.inputs[consts:]]
    # Carries are in C order in every step, whatever they begin as.
    given = [*site.operands[:consts], *(StoredArray.in_order("", type_) for type_ in types)]
    tested = memory_of(condition, given, emission.vector_bits)
    stepped = memory_of(body, given, emission.vector_bits)
    arena = function.element(site.scratch, room(_ANSWER), "i8")
    begin = function.element(arena, max(tested.nbytes, stepped.nbytes), "i8")
    carries = Carries(emission, site.operands[consts:], types, begin)
    test, step = write_step(emission, tested, "condition"), write_step(emission, stepped, "step")
    constants = [("ptr", operand.pointer) for operand in site.operands[:consts]]

    def goes_on() -> str:
        places = [("ptr", place) for place in carries.now()]
        emission.attempt(test, *constants, *places, ("ptr", site.scratch), ("ptr", arena))
        return Lanes(function, _ANSWER.dtype, 1).load(site.scratch, 0)

    with function.loop_while(goes_on):
        written = carries.following()
        places = [("ptr", place) for place in (*carries.now(), *written)]
        emission.attempt(step, *constants, *places, ("ptr", arena))
        carries.turn(written, [False] * len(written))
    carries.finish(site.results)


def _emit_in_registers(
    emission: Emission, node: Node, operands: Sequence[StoredArray], results: Sequence[StoredArray]
) -> None:
    condition, body, consts = _parts(node)

    def build(function: Function, pointers: Sequence[str]) -> None:
        given = [replace(one, pointer=pointer) for one, pointer in zip(operands, pointers, strict=False)]
        taken = [replace(one, pointer=pointer) for one, pointer in zip(results, pointers[len(given) :], strict=True)]
        registers = Registers(function)
        constants = [registers.load(one) for one in given[:consts]]
        carries = [registers.kept(registers.load(one), one.dtype) for one in given[consts:]]

        def held() -> list[Cells]:
            return [registers.held(slots, one.dtype) for slots, one in zip(carries, taken, strict=True)]

        def goes_on() -> str:
            (answer,) = registers.run(condition, [*constants, *held()])
            return str(answer.item())

        with function.loop_while(goes_on):
            after = registers.run(body, [*constants, *held()])
            for cells, slots, one in zip(after, carries, taken, strict=True):
                registers.keep(cells, slots, one.dtype)
        for cells, one in zip(held(), taken, strict=True):
            registers.store(cells, one)

    pointers = [stored.pointer for stored in (*operands, *results)]
    key = ("loop", len(emission.module.kernels))
    emission.kernel(key, "loop", pointers, build, can_fail=may_decline(condition) or may_decline(body))
