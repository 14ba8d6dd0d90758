"""The axes of a nest, and which of them are one."""

from dataclasses import replace

from pullback.backends.nests.nest import Nest
from pullback.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One axis, and what lies along it: strides of reads, writes and results, and which reductions reduce it."""

    size: int
    strides: tuple[int, ...]
    reduced: tuple[bool, ...]


def strides_of(nest: Nest) -> list[tuple[int, ...]]:
    """Strides of reads, writes and reductions, in this order."""
    strides = [read.strides for read in nest.reads]
    strides += [write.strides for write in nest.writes]
    return strides + [reduction.strides for reduction in nest.reductions]


def axes_of(nest: Nest) -> list[Axis]:
    """The axes of a nest."""
    return [
        Axis(
            size,
            tuple(along[axis] for along in strides_of(nest)),
            tuple(axis in reduction.axes for reduction in nest.reductions),
        )
        for axis, size in enumerate(nest.space)
    ]


def with_axes(nest: Nest, axes: list[Axis]) -> Nest:
    """A nest over other axes."""
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


def merged(axes: list[Axis]) -> list[Axis]:
    """Axes along which every operand moves as if they were one, as one; for reductions both or neither are reduced."""
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
    """True if a step along the outer axis goes, for every operand, where the inner axis ends."""
    ends = tuple(stride * inner.size for stride in inner.strides)
    return outer.reduced == inner.reduced and outer.strides == ends
