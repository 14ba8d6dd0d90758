"""Running one node natively: what a program does around a kernel, with guards around its memory."""

import ctypes

import numpy as np
import pytest

from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.emission import EMITTERS, Emission, Site, StoredArray
from pullback.backends.native.linking import host_target, load
from pullback.core.types import type_of
from pullback.ir.graph import Node, Var

GUARD = 4096


class Surrounded:
    """Memory with a guard on both sides, to see what is written past its ends."""

    def __init__(self, nbytes):
        self.memory = np.full(nbytes + 3 * GUARD, 0xFF, np.uint8)  # of floats, NaN
        self.start = GUARD + -(self.memory.ctypes.data + GUARD) % 64
        self.nbytes = nbytes

    @property
    def address(self):
        return self.memory.ctypes.data + self.start

    def as_array(self, shape, dtype):
        return self.memory[self.start : self.start + self.nbytes].view(dtype).reshape(shape)

    @property
    def is_intact(self):
        outside = (self.memory[: self.start], self.memory[self.start + self.nbytes :])
        return all((part == 0xFF).all() for part in outside)


def _run_node(primitive, operands, params):
    """The result of one node, from a kernel."""
    emitter = EMITTERS[primitive]
    types = [type_of(operand) for operand in operands]
    result = primitive.infer(*types, **params)[0]
    inputs = tuple(Var(k, type_) for k, type_ in enumerate(types))
    node = Node(primitive, inputs, tuple(params.items()), (Var(len(inputs), result),), "")
    assert emitter.supports(node) is None
    bits = host_target().vector_bits
    module = Module(bits)
    function = module.function("program", [("ptr", "table")], internal=False)
    pointers = [function.load("ptr", function.element("%table", k, "ptr")) for k in range(len(types) + 2)]
    stored = [
        StoredArray(pointer, x.shape, tuple(stride // x.itemsize for stride in x.strides), x.dtype)
        for pointer, x in zip(pointers, operands, strict=False)
    ]
    y_strides = np.empty(result.shape, result.dtype).strides
    y = StoredArray(
        pointers[-2], result.shape, tuple(stride // result.dtype.itemsize for stride in y_strides), result.dtype
    )
    emitter.emit(Emission(module, function), node, Site(stored, [y], pointers[-1]))
    memory, scratch = Surrounded(result.nbytes), Surrounded(emitter.scratch(node, bits))
    table = (ctypes.c_void_p * len(pointers))(*(x.ctypes.data for x in operands), memory.address, scratch.address)
    loaded = load(module.text())
    for _ in range(2):  # nothing is left over from the first time
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("program"))(ctypes.addressof(table))
    assert memory.is_intact
    assert scratch.is_intact
    return memory.as_array(result.shape, result.dtype).copy()


@pytest.fixture(scope="session")
def run_node():
    """`run_node(primitive, operands, params)`: the result of one node, from a kernel."""
    return _run_node
