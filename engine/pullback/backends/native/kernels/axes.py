"""The axes of a nest: as few as its operands allow, in an order that suits memory.

Axes of one element go. Two axes along which every operand moves as if they were one become one; for reductions that takes
that both or neither are reduced. The last axis becomes the one that vectors lie along: where most operands have stride 1.
"""

import math
from dataclasses import dataclass, replace

from pullback.backends.native.kernels.nest import Nest


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One axis, and what lies along it: strides of reads, writes and results, and which reductions reduce it."""

    size: int
    strides: tuple[int, ...]
    reduced: tuple[bool, ...]


def with_few_axes(nest: Nest, vector_bits: int) -> Nest:
    """The same nest over axes dropped, merged and ordered; there must be points in its space."""
    axes = _merged([axis for axis in _axes_of(nest) if axis.size != 1])
    return _with_axes(nest, _ordered(axes, len(nest.reads), vector_bits))


def _axes_of(nest: Nest) -> list[Axis]:
    strides = [operand.strides for operand in nest.reads]
    strides += [operand.strides for operand in nest.writes]
    strides += [operand.strides for operand in nest.reductions]
    return [
        Axis(
            size,
            tuple(along[axis] for along in strides),
            tuple(axis in reduction.axes for reduction in nest.reductions),
        )
        for axis, size in enumerate(nest.space)
    ]


def _with_axes(nest: Nest, axes: list[Axis]) -> Nest:
    columns = [tuple(axis.strides[k] for axis in axes) for k in range(_operand_count(nest))]
    reads = [replace(read, strides=columns.pop(0)) for read in nest.reads]
    writes = [replace(write, strides=columns.pop(0)) for write in nest.writes]
    reductions = [
        replace(
            reduction,
            strides=columns.pop(0),
            axes=frozenset(number for number, axis in enumerate(axes) if axis.reduced[k]),
        )
        for k, reduction in enumerate(nest.reductions)
    ]
    space = tuple(axis.size for axis in axes)
    return replace(nest, space=space, reads=tuple(reads), writes=tuple(writes), reductions=tuple(reductions))


def _operand_count(nest: Nest) -> int:
    return len(nest.reads) + len(nest.writes) + len(nest.reductions)


def _merged(axes: list[Axis]) -> list[Axis]:
    axes = list(axes)
    while True:
        pair = next(
            ((a, b) for a in axes for b in axes if a is not b and _continues(outer=a, inner=b)),
            None,
        )
        if pair is None:
            return axes
        outer, inner = pair
        axes[axes.index(outer)] = replace(inner, size=outer.size * inner.size)
        axes = [axis for axis in axes if axis is not inner]


def _continues(outer: Axis, inner: Axis) -> bool:
    """Whether a step along the outer axis goes, for every operand, where the inner axis ends."""
    ends = tuple(stride * inner.size for stride in inner.strides)
    return outer.reduced == inner.reduced and outer.strides == ends


def _ordered(axes: list[Axis], reads: int, vector_bits: int) -> list[Axis]:
    if not axes:
        return axes
    lanes = vector_bits // 32
    along = min(reversed(axes), key=lambda axis: _cost_along(axis, axes, reads, lanes))
    others = [axis for axis in axes if axis is not along]
    # Kept axes before reduced ones, so that sums end in registers; then the farther apart in memory the further out.
    others.sort(key=lambda axis: (sum(axis.reduced), -sum(map(abs, axis.strides))))
    return [*others, along]


def _cost_along(axis: Axis, axes: list[Axis], reads: int, lanes: int) -> float:
    """What one element costs, about, if vectors lie along an axis."""
    per_vector = 1.0
    for number, stride in enumerate(axis.strides):
        if abs(stride) > 1:
            elsewhere = any(other.strides[number] == 1 for other in axes if other is not axis)
            weight = 2.0 if number >= reads else 1.0
            per_vector += weight * (3.0 if elsewhere else min(abs(stride), lanes))
    vectors = math.ceil(axis.size / lanes)
    across = 4.0 * sum(axis.reduced)
    return (per_vector * vectors + across) / axis.size
