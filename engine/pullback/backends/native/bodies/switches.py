"""Branches and checkpoints: a body is a function of its own, and the one that is taken writes the results.

A number without a branch is not handled by native code: the program declines, and the slow path raises. The body of a checkpoint
is always taken; what it computes again is found in no other function, so that nothing is kept for it.
"""

from collections.abc import Sequence

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.native.bodies.body_functions import (
    memory_of,
    nbytes_of,
    why_not_steps,
    write_step,
)
from pullback.backends.native.emission import Emission, Site, StoredArray, emits
from pullback.control.checkpoint_rule import checkpointed
from pullback.control.switch_rule import switch
from pullback.ir.graph import Graph, Node


def _bodies(node: Node) -> list[Graph]:
    return [body for _, body in node.bodies()]


def _why_not(node: Node) -> str | None:
    reasons = (why_not_steps(body) for body in _bodies(node))
    reason = next((reason for reason in reasons if reason is not None), None)
    if reason is not None:
        return f"{node.primitive.name}, as {reason}"
    return None


def _scratch(node: Node, vector_bits: int) -> int:
    return max(nbytes_of(body, vector_bits) for body in _bodies(node))


@emits(switch, supports=_why_not, scratch=_scratch)
def _emit_switch(emission: Emission, node: Node, site: Site) -> None:
    function, branches = emission.function, _bodies(node)
    index = Lanes(function, site.operands[0].dtype, 1).load(site.operands[0].pointer, 0)
    type_ = Lanes(function, site.operands[0].dtype, 1).type
    if site.operands[0].dtype.kind != "b":
        outside = function.value(f"icmp uge {type_} {index}, {len(branches)}")
        with function.when(outside):
            function.give(1)
    for number, branch in enumerate(branches):
        wanted = ("false", "true")[number] if site.operands[0].dtype.kind == "b" else number
        with function.when(function.value(f"icmp eq {type_} {index}, {wanted}")):
            _take(emission, branch, site.operands[1:], site.results, site.scratch)


@emits(checkpointed, supports=_why_not, scratch=_scratch)
def _emit_checkpointed(emission: Emission, node: Node, site: Site) -> None:
    (body,) = _bodies(node)
    _take(emission, body, site.operands, site.results, site.scratch)


def _take(
    emission: Emission, body: Graph, operands: Sequence[StoredArray], results: Sequence[StoredArray], scratch: str
) -> None:
    name = write_step(emission, memory_of(body, operands, emission.vector_bits), "branch")
    pointers = [("ptr", one.pointer) for one in (*operands, *results)]
    emission.attempt(name, *pointers, ("ptr", scratch))
