"""Nests cut into blocks along some of their axes.

A block is a nest of its own over a part of the axes, with every pointer moved to where the part begins. What is reduced along
an axis that is cut is reduced by each block into a place of its own, and these *partials* are combined afterwards: so blocks
depend on nothing but their own part, and results on nothing but how a nest is cut.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import memory_type
from pullback.backends.native.emission import Emission
from pullback.backends.native.kernels.nests import emit_nest
from pullback.backends.nests.nest import Nest, NestRead, NestWrite, Reduction
from pullback.dataclass import dataclass
from pullback.ir.strides import contiguous_strides


@dataclass(frozen=True, slots=True)
class Cut:
    """Blocks of one size along an axis; the last one has what is left."""

    axis: int
    size: int
    blocks: int
    last_size: int


def in_blocks(axis: int, size: int, unit: int, blocks: int, *, longer: bool = True) -> Cut:
    """About this number of blocks of whole units, all of one size if possible: a function is written for each size.

    Unless they may be `longer`, blocks have at most the length that this number gives.
    """
    units = math.ceil(size / unit)
    about = math.ceil(units / blocks)
    nearby = range(max(1, about - about // 3), about + (about // 2 if longer else 0) + 1)
    alike = [own for own in nearby if own < units and size % (own * unit) == 0]
    own = min(alike, key=lambda own: abs(own - about)) if alike else about
    length = min(size, own * unit) if blocks > 1 else size
    count = math.ceil(size / length)
    return Cut(axis, length, count, size - (count - 1) * length)


#: By axis that is cut, how long a block is there.
Sizes: TypeAlias = dict[int, int]


def count_of(cuts: Sequence[Cut]) -> int:
    """The number of blocks."""
    return math.prod(one.blocks for one in cuts)


def write_block(
    function: Function, cuts: Sequence[Cut], block: Index, write: Callable[[list[Index], Sizes], None]
) -> None:
    """Write the block of a number: `write(indices, sizes)`, once for each size that blocks have.

    The indices are the numbers of the block along each cut; the last cut is gone along first.
    """
    indices: list[Index] = []
    for number, one in enumerate(cuts):
        inside = math.prod(other.blocks for other in cuts[number + 1 :])
        index = block
        if isinstance(index, int):
            index = index // inside % one.blocks
        else:
            index = function.value(f"udiv i64 {index}, {inside}") if inside > 1 else index
            index = function.value(f"urem i64 {index}, {one.blocks}") if number else index
        indices.append(index)

    def along(number: int, sizes: Sizes) -> None:
        if number == len(cuts):
            write(indices, sizes)
            return
        one = cuts[number]
        if one.last_size == one.size:
            along(number + 1, {**sizes, one.axis: one.size})
            return
        for relation, size in (("ne", one.size), ("eq", one.last_size)):
            with function.when(function.value(f"icmp {relation} i64 {indices[number]}, {one.blocks - 1}")):
                along(number + 1, {**sizes, one.axis: size})

    along(0, {})


# --- operands -----------------------------------------------------------------------------------------------------------
def operands_of(nest: Nest) -> tuple[NestRead | NestWrite | Reduction, ...]:
    """All operands of a nest: its reads, writes and reductions."""
    return (*nest.reads, *nest.writes, *nest.reductions)


def with_own_pointers(nest: Nest) -> Nest:
    """A pointer for each operand: those of one array may move by different strides."""
    count = iter(range(len(operands_of(nest))))
    reads = tuple(replace(read, pointer=next(count)) for read in nest.reads)
    writes = tuple(replace(write, pointer=next(count)) for write in nest.writes)
    reductions = tuple(replace(reduction, pointer=next(count)) for reduction in nest.reductions)
    return replace(nest, reads=reads, writes=writes, reductions=reductions)


def moved_to_block(
    function: Function,
    nest: Nest,
    cuts: Sequence[Cut],
    pointers: Sequence[str],
    indices: Sequence[Index],
    fixed: Collection[int] = (),
) -> list[str]:
    """The pointers at a block, of the operands of a nest that has one for each; the `fixed` ones are where they always are."""
    moved = []
    for number, (pointer, operand) in enumerate(zip(pointers, operands_of(nest), strict=True)):
        steps = () if number in fixed else zip(indices, (_step(nest, operand, cuts, one) for one in cuts), strict=True)
        moved.append(function.element(pointer, function.offset(*steps), memory_type(operand.dtype)))
    return moved


def block_of(nest: Nest, cuts: Sequence[Cut], sizes: Sizes) -> Nest:
    """The nest over a block; what is reduced along an axis that is cut goes to a place in C order."""
    space = tuple(sizes.get(axis, whole) for axis, whole in enumerate(nest.space))
    reductions = tuple(
        replace(reduction, strides=_strides_in_order(nest, reduction)) if is_combined(reduction, cuts) else reduction
        for reduction in nest.reductions
    )
    return replace(nest, space=space, reductions=reductions)


def _step(nest: Nest, operand: NestRead | NestWrite | Reduction, cuts: Sequence[Cut], along: Cut) -> int:
    """The distance of an operand from one block to the next; blocks begin where a period does."""
    if isinstance(operand, NestRead) and operand.period and along.axis == len(nest.space) - 1:
        return 0
    if not isinstance(operand, Reduction) or not is_combined(operand, cuts):
        return operand.strides[along.axis] * along.size
    if along.axis not in operand.axes:
        return _strides_in_order(nest, operand)[along.axis] * along.size
    inside = [one.blocks for one in cuts[list(cuts).index(along) + 1 :] if one.axis in operand.axes]
    return math.prod(inside) * math.prod(kept_sizes(nest, operand))


# --- what blocks find of reductions -------------------------------------------------------------------------------------
def is_combined(reduction: Reduction, cuts: Sequence[Cut]) -> bool:
    """True if each block finds a part of a reduction."""
    return any(one.axis in reduction.axes for one in cuts)


def partials_of(nest: Nest, reduction: Reduction, cuts: Sequence[Cut]) -> int:
    """The number of partial results of a reduction, over all blocks."""
    return _parts(reduction, cuts) * math.prod(kept_sizes(nest, reduction))


def combine(
    emission: Emission, nest: Nest, reduction: Reduction, cuts: Sequence[Cut], partials: str, result: str
) -> None:
    """Reduce what the blocks found to the result."""
    kept = kept_sizes(nest, reduction)
    parts = _parts(reduction, cuts)
    strides = tuple(stride for axis, stride in enumerate(reduction.strides) if axis not in reduction.axes)
    read = NestRead(0, contiguous_strides((parts, *kept)), reduction.dtype)
    whole = replace(reduction, value=0, axes=frozenset({0}), pointer=1, strides=(0, *strides))
    emit_nest(emission, Nest((parts, *kept), (read,), (), (), (whole,)), [partials, result])


def _parts(reduction: Reduction, cuts: Sequence[Cut]) -> int:
    return math.prod(one.blocks for one in cuts if one.axis in reduction.axes)


def kept_sizes(nest: Nest, reduction: Reduction) -> tuple[int, ...]:
    """The sizes of the axes that a reduction leaves."""
    return tuple(size for axis, size in enumerate(nest.space) if axis not in reduction.axes)


def _strides_in_order(nest: Nest, reduction: Reduction) -> tuple[int, ...]:
    own = iter(contiguous_strides(kept_sizes(nest, reduction)))
    return tuple(0 if axis in reduction.axes else next(own) for axis in range(len(nest.space)))
