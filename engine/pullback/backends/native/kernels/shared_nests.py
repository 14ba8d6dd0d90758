"""Nests with enough work to be shared between threads, cut into blocks along one axis.

A block is a nest of its own over a part of the axis, with every pointer moved to where the part begins. What is reduced along
that axis is reduced by each block into a place of its own, and these are combined afterwards; an axis along which nothing is
reduced is taken where there is one.

How a nest is cut depends on its work alone, so the result is the same on any number of threads.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pullback.backends.native.elementary import scalars
from pullback.backends.native.emission import Emission, contiguous_strides
from pullback.backends.native.kernels.axes import with_few_axes
from pullback.backends.native.kernels.nest import Nest, Read, Reduction, Write
from pullback.backends.native.kernels.nests import emit_nest
from pullback.backends.native.threads.sharing import blocks_of, share
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import memory_type

PARTIALS_BYTES: Final = 1 << 15
"""Results of blocks are on the stack of the program: not more than this."""
LINE: Final = 64
"""An axis that vectors lie along, or what is written, is cut at multiples of so many: blocks share no line of the cache."""
STRETCH: Final = 1024
"""Where there are other axes, a block has at least so many elements that follow each other: pieces of rows would be slow."""
ENOUGH: Final = 16
"""So many blocks keep the threads of most machines busy; an axis that gives fewer is taken where no other gives more."""

_CYCLES_PER_NS: Final = 3.0
_BYTES_PER_NS: Final = 16.0  # between main memory and the third cache


def emit_shared_nest(emission: Emission, nest: Nest, pointers: Sequence[str]) -> None:
    """Call the function of a nest, or that of its blocks where they are worth sharing."""
    small = with_few_axes(nest, emission.vector_bits) if math.prod(nest.space) else nest
    cut = _cut(small, emission.vector_bits)
    if cut is None:
        emit_nest(emission, nest, pointers)
        return
    own = _with_own_pointers(small)
    given = [pointers[operand.pointer] for operand in _operands(small)]
    combined = [reduction for reduction in own.reductions if cut.axis in reduction.axes]
    results = [given[reduction.pointer] for reduction in combined]
    for reduction in combined:
        count = cut.blocks * math.prod(_kept_sizes(own, reduction))
        given[reduction.pointer] = emission.function.slot(memory_type(reduction.dtype), count=count, align=64)

    def build(function: Function, arguments: Sequence[str], block: Index) -> None:
        _write_block(function, own, cut, arguments, block)

    share(emission, ("shared nest", repr(own), cut), "nest", given, cut.blocks, build)
    for reduction, result in zip(combined, results, strict=True):
        _combine(emission, own, reduction, cut.blocks, given[reduction.pointer], result)


# --- where to cut -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Cut:
    """Blocks of one size along an axis; the last one has what is left."""

    axis: int
    size: int
    blocks: int
    last_size: int


def _cut(nest: Nest, vector_bits: int) -> _Cut | None:
    """How to cut a nest of few axes, or None where it is not worth it or not possible."""
    work_ns = estimated_ns(nest, vector_bits)
    if blocks_of(work_ns, math.prod(nest.space)) == 1:
        return None
    cuts = [_cut_along(axis, nest, work_ns) for axis in range(len(nest.space))]
    possible = [cut for cut in cuts if cut is not None]
    reduced = frozenset().union(*(reduction.axes for reduction in nest.reductions))
    # Enough blocks first; then no results of blocks to combine; then whole stretches of memory.
    return min(possible, key=lambda cut: (-min(cut.blocks, ENOUGH), cut.axis in reduced, cut.axis), default=None)


def _cut_along(axis: int, nest: Nest, work_ns: float) -> _Cut | None:
    unit = 1
    if axis == len(nest.space) - 1 or any(abs(write.strides[axis]) == 1 for write in nest.writes):
        unit = LINE
    if axis == len(nest.space) - 1 > 0:
        unit = STRETCH
    blocks = blocks_of(work_ns, nest.space[axis] // unit)
    partials = _partials_bytes(nest, axis)
    if partials:
        blocks = min(blocks, PARTIALS_BYTES // partials)
    return _in_blocks(axis, nest.space[axis], unit, blocks) if blocks > 1 else None


def _in_blocks(axis: int, size: int, unit: int, blocks: int) -> _Cut:
    """About so many blocks; all alike where that is possible nearby, since each size is a function of its own."""
    units = size // unit
    about = math.ceil(units / blocks)
    nearby = range(max(1, about - about // 3), about + about // 2 + 1)
    alike = [own for own in nearby if own < units and size % (own * unit) == 0]
    own = min(alike, key=lambda own: abs(own - about)) if alike else about
    count = math.ceil(size / (own * unit))
    return _Cut(axis, own * unit, count, size - (count - 1) * own * unit)


def estimated_ns(nest: Nest, vector_bits: int) -> float:
    """How long a nest takes on one thread, roughly: the longer of its arithmetic and of its way through memory."""
    axes = nest.axes_of_values()
    points = math.prod(nest.space)
    cycles = sum(points * 8 * reduction.dtype.itemsize / vector_bits for reduction in nest.reductions)
    for step, along in zip(nest.steps, axes[len(nest.reads) :], strict=True):
        computed = math.prod(nest.space[axis] for axis in along)
        cycles += computed * 8 * step.dtype.itemsize / vector_bits * scalars.cost(step.primitive, step.dtype)
    moved = 0
    for operand in _operands(nest):
        moved += operand.dtype.itemsize * math.prod(
            size for size, stride in zip(nest.space, operand.strides, strict=True) if stride
        )
    return max(cycles / _CYCLES_PER_NS, moved / _BYTES_PER_NS)


def _partials_bytes(nest: Nest, axis: int) -> int:
    """What one block finds of reductions along the axis."""
    return sum(
        math.prod(_kept_sizes(nest, reduction)) * reduction.dtype.itemsize
        for reduction in nest.reductions
        if axis in reduction.axes
    )


# --- blocks -------------------------------------------------------------------------------------------------------------
def _write_block(function: Function, nest: Nest, cut: _Cut, pointers: Sequence[str], block: Index) -> None:
    """The call of the nest of a block, which is another one for the last if that has another size."""
    moved = [
        function.element(pointer, function.mul(block, step), memory_type(operand.dtype))
        for pointer, operand, step in zip(pointers, _operands(nest), _steps(nest, cut), strict=True)
    ]
    emission = Emission(function.module, function)
    if cut.last_size == cut.size:
        emit_nest(emission, _block_of(nest, cut, cut.size), moved)
        return
    is_last = function.value(f"icmp eq i64 {block}, {cut.blocks - 1}")
    is_other = function.value(f"xor i1 {is_last}, true")
    with function.when(is_other):
        emit_nest(emission, _block_of(nest, cut, cut.size), moved)
    with function.when(is_last):
        emit_nest(emission, _block_of(nest, cut, cut.last_size), moved)


def _steps(nest: Nest, cut: _Cut) -> list[int]:
    """How far each operand moves from one block to the next."""
    operands: tuple[Read | Write, ...] = (*nest.reads, *nest.writes)
    steps = [operand.strides[cut.axis] * cut.size for operand in operands]
    for reduction in nest.reductions:
        whole = math.prod(_kept_sizes(nest, reduction))
        steps.append(whole if cut.axis in reduction.axes else reduction.strides[cut.axis] * cut.size)
    return steps


def _block_of(nest: Nest, cut: _Cut, size: int) -> Nest:
    """The nest over a part of the axis; what is reduced along it goes to a place in C order."""
    space = tuple(size if axis == cut.axis else whole for axis, whole in enumerate(nest.space))
    reductions = tuple(
        replace(reduction, strides=_strides_in_order(nest, reduction)) if cut.axis in reduction.axes else reduction
        for reduction in nest.reductions
    )
    return replace(nest, space=space, reductions=reductions)


def _combine(emission: Emission, nest: Nest, reduction: Reduction, blocks: int, partials: str, result: str) -> None:
    """Reduce what the blocks found to the result."""
    kept = _kept_sizes(nest, reduction)
    strides = tuple(stride for axis, stride in enumerate(reduction.strides) if axis not in reduction.axes)
    read = Read(0, contiguous_strides((blocks, *kept)), reduction.dtype)
    whole = replace(reduction, value=0, axes=frozenset({0}), pointer=1, strides=(0, *strides))
    emit_nest(emission, Nest((blocks, *kept), (read,), (), (), (whole,)), [partials, result])


def _kept_sizes(nest: Nest, reduction: Reduction) -> tuple[int, ...]:
    return tuple(size for axis, size in enumerate(nest.space) if axis not in reduction.axes)


def _strides_in_order(nest: Nest, reduction: Reduction) -> tuple[int, ...]:
    own = iter(contiguous_strides(_kept_sizes(nest, reduction)))
    return tuple(0 if axis in reduction.axes else next(own) for axis in range(len(nest.space)))


# --- operands -----------------------------------------------------------------------------------------------------------
def _operands(nest: Nest) -> tuple[Read | Write | Reduction, ...]:
    return (*nest.reads, *nest.writes, *nest.reductions)


def _with_own_pointers(nest: Nest) -> Nest:
    """A pointer for each operand: those of one array may move by different strides."""
    count = iter(range(len(_operands(nest))))
    reads = tuple(replace(read, pointer=next(count)) for read in nest.reads)
    writes = tuple(replace(write, pointer=next(count)) for write in nest.writes)
    reductions = tuple(replace(reduction, pointer=next(count)) for reduction in nest.reductions)
    return replace(nest, reads=reads, writes=writes, reductions=reductions)
