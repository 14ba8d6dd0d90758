"""A graph as machine code that can be called."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from pullback.backends import interpreter
from pullback.backends.llvm.elementary import scalars
from pullback.backends.native.entry import NativeProgram, Runner, Writer, runner, writer
from pullback.backends.native.identity import program_key
from pullback.backends.native.linking import host_target, load
from pullback.backends.native.memory import plan_memory
from pullback.backends.native.program import emit_program
from pullback.backends.nests.fusion import REDUCTIONS, is_elementwise
from pullback.ir.graph import Graph, Node
from pullback.planning import schedule

#: A native program that is expected to take longer runs without the interpreter's lock; to give it up and get it back
#: costs 60 ns where no other thread waits for it, and milliseconds where one does.
LONGEST_UNDER_LOCK_NS = 10_000


class NativeExecutable:
    """A graph as machine code; what has to be seen of its last outputs, the guards of another graph, comes with it."""

    def __init__(self, graph: Graph, guards: Sequence[bool | int] = ()) -> None:
        target = host_target()
        self.graph = graph
        self.memory = plan_memory(graph, target.vector_bits)
        self.vector_bits = target.vector_bits
        loaded = load(lambda: self.text, key=lambda: program_key(self.memory, target.vector_bits))
        self.text_hash = loaded.text_hash
        variables = (*graph.inputs, *(capture.var for capture in graph.captures))
        self.program = NativeProgram(
            loaded.address("program"),
            tuple(var.type for var in variables),
            tuple(atom.type for atom in graph.outputs),
            tuple(guards),
            tuple(capture.value for capture in graph.captures),
            self.memory.nbytes,
            releases=sum(_nanoseconds_of(node, target.vector_bits) for node in graph.nodes) > LONGEST_UNDER_LOCK_NS,
            owner=loaded,
        )

    @cached_property
    def text(self) -> str:
        """The program as LLVM IR, written when it is needed: not where object code of it is found on disk."""
        return emit_program(self.memory, self.vector_bits).text()

    def runner(self, otherwise: Callable[..., Any]) -> Runner:
        """Call it with the inputs: it gives the outputs. Where the program declines, the interpreter's does otherwise."""
        return runner(self.program, otherwise)

    def writer(self, listed: Mapping[int, int]) -> Writer:
        """Call it with a list of arrays, and with the inputs and arrays for the outputs that are not `listed` in it."""
        return writer(self.program, lambda *operands: self._interpreted(*operands), listed)  # noqa: PLW0108 - made when needed

    @cached_property
    def _interpreted(self) -> interpreter.Program:
        return interpreter.emit(schedule.plan_memory(self.graph)).program


def _nanoseconds_of(node: Node, vector_bits: int) -> float:
    """About what a node takes: by its elements, its operations, and whether they are those of a product.

    A guess for one decision alone, right within a factor of about five on processors of the 2020s.
    """
    flops = schedule.flops_of(node)
    elements = max(atom.type.size for atom in (*node.inputs, *node.outputs))
    if is_elementwise(node) or node.primitive in REDUCTIONS:  # in registers, with others of the same nest
        dtype = node.outputs[0].type.dtype
        return elements * (0.06 + 8 * dtype.itemsize / vector_bits * scalars.cost(node.primitive, dtype) / 3)
    if node.bodies():
        steps: int = dict(node.params).get("length", 1)
        bodies = (sum(_nanoseconds_of(inside, vector_bits) for inside in body.nodes) for _, body in node.bodies())
        return steps * max(bodies)
    return 0.1 * elements + (0.015 if flops > 16 * elements else 0.2) * flops
