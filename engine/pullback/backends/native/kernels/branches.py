"""Branches: each is a function of its own, and the one that is taken writes the results.

A number without a branch is not handled by native code: the program declines, and the slow path raises.
"""

from collections.abc import Sequence

from pullback.backends.llvm.writing.lanes import Lanes
from pullback.backends.native.emission import Emission, Stored, emits
from pullback.backends.native.kernels.steps import (
    memory_of,
    nbytes_of,
    why_not_steps,
    write_step,
)
from pullback.control.switch_rule import switch
from pullback.ir.graph import Graph, Node


def _branches(node: Node) -> tuple[Graph, ...]:
    branches: tuple[Graph, ...] = dict(node.params)["branches"]
    return branches


def _why_not(node: Node) -> str | None:
    reasons = (why_not_steps(branch) for branch in _branches(node))
    reason = next((reason for reason in reasons if reason is not None), None)
    if reason is not None:
        return f"switch, as {reason}"
    return None


def _scratch(node: Node, vector_bits: int) -> int:
    return max(nbytes_of(branch, vector_bits) for branch in _branches(node))


@emits(switch, supports=_why_not, scratch=_scratch)
def _emit_switch(
    emission: Emission, node: Node, operands: Sequence[Stored], results: Sequence[Stored], scratch: str
) -> None:
    function, branches = emission.function, _branches(node)
    index = Lanes(function, operands[0].dtype, 1).load(operands[0].pointer, 0)
    type_ = Lanes(function, operands[0].dtype, 1).type
    if operands[0].dtype.kind != "b":
        outside = function.value(f"icmp uge {type_} {index}, {len(branches)}")
        with function.when(outside):
            function.give(1)
    pointers = [("ptr", one.pointer) for one in (*operands[1:], *results)]
    for number, branch in enumerate(branches):
        memory = memory_of(branch, operands[1:], emission.vector_bits)
        name = write_step(emission, memory, "branch")
        wanted = ("false", "true")[number] if operands[0].dtype.kind == "b" else number
        with function.when(function.value(f"icmp eq {type_} {index}, {wanted}")):
            emission.attempt(name, *pointers, ("ptr", scratch))
