"""Running a native program on arrays, from Python: what the emitted entry does in nanoseconds, done plainly.

Operands may be of any layout and any kind of number: what is not in C order is copied first. Where the program says that it
cannot compute something for these values, the interpreter does, and raises the error that there is.
"""

import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pullback.backends import interpreter
from pullback.backends.native.identity import program_key
from pullback.backends.native.linking import host_target, load
from pullback.backends.native.memory import plan_memory
from pullback.backends.native.program import emit_program
from pullback.ir.graph import Graph
from pullback.planning import schedule

_Function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class Native:
    """A graph without guards as machine code."""

    def __init__(self, graph: Graph) -> None:
        target = host_target()
        self.graph = graph
        self.memory = plan_memory(graph, target.vector_bits)
        self._vector_bits = target.vector_bits
        self._loaded = load(lambda: self.text, key=program_key(self.memory, target.vector_bits))
        self.address = self._loaded.address("program")
        self._function = _Function(self.address)
        variables = (*graph.inputs, *(capture.var for capture in graph.captures))
        self._types = [var.type for var in variables]

    @cached_property
    def text(self) -> str:
        """The program as LLVM IR, written when it is asked for: not where object code of it is found on disk."""
        return emit_program(self.memory, self._vector_bits).text()

    def run(self, operands: Sequence[Any], outs: Sequence[np.ndarray[Any, Any]], arena: int) -> None:
        """Compute into arrays in C order, with scratch memory that begins at an address."""
        read = [
            np.ascontiguousarray(operand, type_.dtype) for operand, type_ in zip(operands, self._types, strict=True)
        ]
        addresses = [array.ctypes.data for array in (*read, *outs)]
        table = (ctypes.c_void_p * (len(addresses) + 1))(*addresses, arena)
        if self._function(ctypes.addressof(table)):
            for out, value in zip(outs, self._interpreted(*operands), strict=True):
                out[...] = value

    @cached_property
    def _interpreted(self) -> interpreter.Program:
        return interpreter.emit(schedule.plan_memory(self.graph)).program
