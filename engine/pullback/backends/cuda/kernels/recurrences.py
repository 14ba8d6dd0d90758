"""The kernel of a linear recurrence: a thread for each line, which takes one step after the other.

    s[k] = a[k] * s[k-1] + b[k]      from the first step on, or from the last with s[k+1]

Nothing is computed but what the rule computes, in its order: products of factors alone, of which a scan in parts is made,
overflow where single steps do not. Operands and result are in C order and of one dtype and shape.
"""

from math import prod
from typing import Any

import numpy as np

from pullback.backends.cuda.kernels.grids import GridOfLines
from pullback.backends.cuda.kernels.kernel_text import INDEX_LIMIT, VECTOR_BITS, Kernel, Kernels, Parameter, text_of
from pullback.backends.cuda.kernels.phases import new_phase
from pullback.backends.llvm.builder.function import Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.core.types import Shape

#: Steps whose factors and terms are read before the first of them is taken, so that the reads wait together.
READ_TOGETHER = 8


def write_recurrence(shape: Shape, dtype: np.dtype[Any], axis: int, *, reverse: bool) -> Kernels:
    """The kernel of a recurrence along an axis; the pieces are the result, the factors and the terms."""
    count, inner = shape[axis], prod(shape[axis + 1 :])
    stride = -inner if reverse else inner
    grid = GridOfLines(prod(shape) // count)
    module = Module(VECTOR_BITS, "i32" if prod(shape) < INDEX_LIMIT else "i64")
    function = new_phase(module, "recurrence_0_work", 3)
    lanes, element = Lanes(function, dtype, 1), memory_type(dtype)
    line = function.add(function.mul("%block", grid.threads), "%thread")

    def place(pointer: str, first: Index, step: int) -> str:
        return function.element(function.element(pointer, first, element), step * stride, element)

    with function.when(function.value(f"icmp slt {function.index_type} {line}, {grid.lines}")):
        outer, along = function.divide(line, inner)
        begin = function.add(function.mul(outer, count * inner), along)
        begin = function.add(begin, (count - 1) * inner if reverse else 0)
        state, term = function.slot(element), lanes.load("%p2", begin)
        lanes.store(term, "%p0", begin)
        lanes.store(term, state)

        def steps(first: Index, several: int) -> None:
            offset = function.add(begin, function.mul(first, stride))
            read = [[lanes.load(place(pointer, offset, k)) for pointer in ("%p1", "%p2")] for k in range(several)]
            value = lanes.load(state)
            for k, (factor, term) in enumerate(read):
                value = lanes.add(lanes.mul(factor, value), term)
                lanes.store(value, place("%p0", offset, k))
            lanes.store(value, state)

        whole = 1 + (count - 1) // READ_TOGETHER * READ_TOGETHER
        for start, stop, several in ((1, whole, READ_TOGETHER), (whole, count, 1)):
            if start < stop:
                with function.loop(start, stop, several) as first:
                    steps(first, several)
    parameters = (Parameter(0, False, True), Parameter(1, True, False), Parameter(2, True, False))
    kernel = Kernel("recurrence_0", (function.name,), parameters, grid, 0, module.index_type)
    return Kernels(text_of(module), (kernel,), 3, (), 3 * prod(shape) * dtype.itemsize)
