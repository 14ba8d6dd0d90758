"""Emission of a nest: one function of the program for each nest that differs once its axes are few.

Nest -> axes         the same nest with as few axes as it needs, in an order that suits memory      axes.py
-> tiling       the loops: vectors and what is unrolled, strips, blocks of sums                tiling.py, costs.py
-> bodies       the text: every value where its operands are first there,                      nest_text.py,
reductions in registers, on the stack or in their result,                      accumulators.py,
operands that lie across the vectors, apart or backwards                       register_transpose.py,
strided.py
-> nests        one function of the program, or one for each pass                              nests.py
-> blocks       several functions over parts of the space, and what they found combined        nest_blocks.py
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any

from pullback.backends.llvm.accumulators import starting_value
from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.elementary import scalars
from pullback.backends.native.emission import Emission
from pullback.backends.native.kernels.axes import with_few_axes
from pullback.backends.native.kernels.nest_text import write_nest
from pullback.backends.native.kernels.tiling import BLOCK, is_float_sum, tile
from pullback.backends.nests.nest import Constant, Nest, NestRead, NestWrite, Reduction, ReductionKind, Step
from pullback.rules.activations import identity

__all__ = ["Constant", "Nest", "NestRead", "NestWrite", "Reduction", "ReductionKind", "Step", "emit_nest"]


def emit_nest(emission: Emission, nest: Nest, pointers: Sequence[str]) -> None:
    """Call the function of a nest, which is written at its first call."""
    if math.prod(nest.space) == 0:
        _emit_empty(emission, nest, pointers)
        return
    for one in _passes(nest.computing(nest.writes, nest.reductions), emission.vector_bits):
        _emit_pass(emission, one, pointers)


def _passes(nest: Nest, vector_bits: int) -> list[Nest]:
    """The nest, or several where a sum would return to its result so often that its error would grow with the terms.

    Every pass reads all again. What is written comes last: it may be the memory of what is read.
    """
    small = with_few_axes(nest, vector_bits)
    often = [
        is_float_sum(reduction) and kept.returns > BLOCK
        for reduction, kept in zip(small.reductions, tile(small, vector_bits).keeping, strict=True)
    ]
    if not any(often):
        return [small]
    alone: dict[frozenset[int], list[Reduction]] = {}
    for reduction, returning in zip(small.reductions, often, strict=True):
        if returning:
            alone.setdefault(reduction.axes, []).append(reduction)
    passes = [small.computing((), tuple(reductions)) for reductions in alone.values()]
    others = tuple(reduction for reduction, returning in zip(small.reductions, often, strict=True) if not returning)
    if small.writes or others:
        passes.append(small.computing(small.writes, others))
    return [with_few_axes(one, vector_bits) for one in passes]


def _emit_pass(emission: Emission, nest: Nest, pointers: Sequence[str]) -> None:
    def build(function: Function, arguments: Sequence[str]) -> None:
        keeping = tile(nest, emission.vector_bits).keeping
        for kept, reduction in zip(keeping, nest.reductions, strict=True):
            if kept.returns:
                start = starting_value(reduction.kind, reduction.dtype)
                _fill(function, nest, reduction, start, arguments)
        write_nest(function, nest, arguments)

    uses = scalars.uses((step.primitive, step.operand_dtypes) for step in nest.steps)
    emission.kernel_later(_key_of(nest), "nest", pointers, build, uses)


def _key_of(nest: Nest) -> Hashable:
    """The key that nests of one text share. Numbers that are equal and not the same, 0.0 and -0.0 or 1 and True, are told apart."""
    steps = tuple(
        (
            step.primitive,
            tuple([one if isinstance(one, int) else (type(one.value), repr(one.value)) for one in step.operands]),
            step.operand_dtypes,
            step.dtype,
            repr(step.params),
        )
        for step in nest.steps
    )
    return (nest.space, nest.reads, steps, nest.writes, nest.reductions)


def _emit_empty(emission: Emission, nest: Nest, pointers: Sequence[str]) -> None:
    """A space without points: nothing is written, and what is reduced is a reduction of nothing."""
    left = [reduction for reduction in nest.reductions if math.prod(_kept_space(nest, reduction))]
    if not left:
        return

    def build(function: Function, arguments: Sequence[str]) -> None:
        for reduction in left:
            nothing = 0 if reduction.kind == "sum" else starting_value(reduction.kind, reduction.dtype)
            _fill(function, nest, reduction, nothing, arguments)

    emission.kernel(("nest of nothing", repr(nest)), "nest", pointers, build)


def _kept_space(nest: Nest, reduction: Reduction) -> tuple[int, ...]:
    return tuple(size for axis, size in enumerate(nest.space) if axis not in reduction.axes)


def _fill(function: Function, nest: Nest, reduction: Reduction, value: Any, pointers: Sequence[str]) -> None:
    """Give a number to every element of a result."""
    strides = tuple(stride for axis, stride in enumerate(reduction.strides) if axis not in reduction.axes)
    step = Step(identity, (Constant(value),), (reduction.dtype,), reduction.dtype)
    write = NestWrite(0, reduction.pointer, strides, reduction.dtype)
    filling = Nest(_kept_space(nest, reduction), reads=(), steps=(step,), writes=(write,), reductions=())
    write_nest(function, with_few_axes(filling, function.module.vector_bits), pointers)
