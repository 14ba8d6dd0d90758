"""Nests with enough work to be shared between threads, cut into blocks along one axis.

An axis along which nothing is reduced is taken where there is one: what blocks find has to be combined afterwards.

How a nest is cut depends on its work alone, so the result is the same on any number of threads.
"""

import math
from collections.abc import Sequence
from typing import Final

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import memory_type
from pullback.backends.llvm.elementary import scalars
from pullback.backends.native.emission import Emission
from pullback.backends.native.kernels.axes import with_few_axes
from pullback.backends.native.kernels.nest_blocks import (
    Cut,
    Sizes,
    block_of,
    combine,
    in_blocks,
    is_combined,
    kept_sizes,
    moved_to_block,
    operands_of,
    partials_of,
    with_own_pointers,
    write_block,
)
from pullback.backends.native.kernels.nests import emit_nest
from pullback.backends.native.threads.sharing import ENOUGH, blocks_of, share
from pullback.backends.nests.nest import Nest

PARTIALS_BYTES: Final = 1 << 15
"""Results of blocks are on the stack of the program: not more than this."""
LINE: Final = 64
"""An axis that vectors lie along, or what is written, is cut at multiples of it: blocks share no line of the cache."""
STRETCH: Final = 1024
"""The least number of consecutive elements of a block, if there are other axes: short pieces of rows would be slow."""

_CYCLES_PER_NS: Final = 3.0
_BYTES_PER_NS: Final = 16.0  # between main memory and the third cache


def emit_shared_nest(emission: Emission, nest: Nest, pointers: Sequence[str]) -> None:
    """Call the function of a nest, or that of its blocks where they are worth sharing."""
    small = with_few_axes(nest, emission.vector_bits) if math.prod(nest.space) else nest
    cut = _cut(small, emission.vector_bits)
    if cut is None:
        emit_nest(emission, nest, pointers)
        return
    own, cuts = with_own_pointers(small), (cut,)
    given = [pointers[operand.pointer] for operand in operands_of(small)]
    combined = [reduction for reduction in own.reductions if is_combined(reduction, cuts)]
    results = [given[reduction.pointer] for reduction in combined]
    for reduction in combined:
        count = partials_of(own, reduction, cuts)
        given[reduction.pointer] = emission.function.slot(memory_type(reduction.dtype), count=count, align=64)

    def build(function: Function, arguments: Sequence[str], block: Index) -> None:
        def write(indices: Sequence[Index], sizes: Sizes) -> None:
            moved = moved_to_block(function, own, cuts, arguments, indices)
            emit_nest(Emission(function.module, function), block_of(own, cuts, sizes), moved)

        write_block(function, cuts, block, write)

    share(emission, ("shared nest", repr(own), cut), "nest", given, cut.blocks, build)
    for reduction, result in zip(combined, results, strict=True):
        combine(emission, own, reduction, cuts, given[reduction.pointer], result)


# --- where to cut -------------------------------------------------------------------------------------------------------
def _cut(nest: Nest, vector_bits: int) -> Cut | None:
    """The cut of a nest of few axes; None where it is not worth it or not possible."""
    work_ns = estimated_ns(nest, vector_bits)
    if blocks_of(work_ns, math.prod(nest.space)) == 1:
        return None
    cuts = [_cut_along(axis, nest, work_ns) for axis in range(len(nest.space))]
    possible = [cut for cut in cuts if cut is not None]
    reduced = frozenset().union(*(reduction.axes for reduction in nest.reductions))
    # Enough blocks first: an axis that gives fewer is taken where no other gives more. Then no results of blocks to combine;
    # then whole stretches of memory.
    return min(possible, key=lambda cut: (-min(cut.blocks, ENOUGH), cut.axis in reduced, cut.axis), default=None)


def _cut_along(axis: int, nest: Nest, work_ns: float) -> Cut | None:
    unit = 1
    if axis == len(nest.space) - 1 or any(abs(write.strides[axis]) == 1 for write in nest.writes):
        unit = LINE
    if axis == len(nest.space) - 1 > 0:
        unit = STRETCH
    if axis == len(nest.space) - 1 and nest.period:
        unit = math.lcm(unit, nest.period)
    blocks = blocks_of(work_ns, nest.space[axis] // unit)
    partials = _partials_bytes(nest, axis)
    if partials:
        blocks = min(blocks, PARTIALS_BYTES // partials)
    return in_blocks(axis, nest.space[axis], unit, blocks) if blocks > 1 else None


def estimated_ns(nest: Nest, vector_bits: int) -> float:
    """Estimated time of a nest on one thread: the longer of its arithmetic and its memory traffic."""
    axes = nest.axes_of_values()
    points = math.prod(nest.space)
    cycles = sum(points * 8 * reduction.dtype.itemsize / vector_bits for reduction in nest.reductions)
    for step, along in zip(nest.steps, axes[len(nest.reads) :], strict=True):
        computed = math.prod(nest.space[axis] for axis in along)
        cycles += computed * 8 * step.dtype.itemsize / vector_bits * scalars.cost(step.primitive, step.dtype)
    moved = 0
    for operand in operands_of(nest):
        moved += operand.dtype.itemsize * math.prod(
            size for size, stride in zip(nest.space, operand.strides, strict=True) if stride
        )
    return max(cycles / _CYCLES_PER_NS, moved / _BYTES_PER_NS)


def _partials_bytes(nest: Nest, axis: int) -> int:
    """The partial reductions of one block along the axis."""
    return sum(
        math.prod(kept_sizes(nest, reduction)) * reduction.dtype.itemsize
        for reduction in nest.reductions
        if axis in reduction.axes
    )
