"""The axes of a nest: as few as its operands allow, in an order that suits memory.

Axes of one element go. Two axes along which every operand moves as if they were one become one; for reductions that takes
that both or neither are reduced. The last axis becomes the one that vectors lie along: where most operands have stride 1.
"""

import math
from dataclasses import replace

from pullback.backends.native.kernels.costs import cost_of_a_turn, cost_of_steps
from pullback.backends.nests.axes import Axis, axes_of, merged, strides_of, with_axes
from pullback.backends.nests.nest import Nest

#: Vectors, and instructions, about, of a turn that goes along several short rows.
_MOST_VECTORS = 8
_MOST_COST = 400


def with_few_axes(nest: Nest, vector_bits: int) -> Nest:
    """The same nest over axes dropped, merged and ordered; there must be points in its space."""
    if nest.period:
        return nest
    axes = merged([axis for axis in axes_of(nest) if axis.size != 1])
    return _with_period(with_axes(nest, _ordered(axes, nest, vector_bits)), vector_bits)


def _ordered(axes: list[Axis], nest: Nest, vector_bits: int) -> list[Axis]:
    if not axes:
        return axes
    lanes = vector_bits // (8 * nest.widest)
    along = min(reversed(axes), key=lambda axis: _cost_along(axis, axes, nest, lanes))
    others = [axis for axis in axes if axis is not along]
    # Kept axes before reduced ones, so that sums end in registers; then the farther apart in memory the further out.
    others.sort(key=lambda axis: (sum(axis.reduced), -sum(map(abs, axis.strides))))
    return [*others, along]


def _cost_along(axis: Axis, axes: list[Axis], nest: Nest, lanes: int) -> float:
    """Estimated cost of one element if vectors lie along an axis; lanes that the axis does not fill count too."""
    reads = len(nest.reads)
    per_vector = 1.0 + cost_of_steps(nest)
    for number, stride in enumerate(axis.strides):
        if abs(stride) > 1:
            elsewhere = any(other.strides[number] == 1 for other in axes if other is not axis)
            weight = 2.0 if number >= reads else 1.0
            per_vector += weight * (3.0 if elsewhere else min(abs(stride), lanes))
    vectors = math.ceil(axis.size / lanes)
    across = 4.0 * sum(axis.reduced)
    return (per_vector * vectors + across) / axis.size


def cycles_of_nest(nest: Nest, vector_bits: int) -> float:
    """Estimated cycles of a nest for the layouts of its operands: compares layouts, not nests. Its space has points."""
    axes = merged([axis for axis in axes_of(nest) if axis.size != 1])
    lanes = vector_bits // (8 * nest.widest)
    least = min((_cost_along(axis, axes, nest, lanes) for axis in axes), default=0.0)
    return math.prod(nest.space) * (least + (cost_of_a_turn(nest) - cost_of_steps(nest)) / lanes)


def _with_period(nest: Nest, vector_bits: int) -> Nest:
    """Rows too short for vectors as one line, if all but what is the same for each row is contiguous: that has a period.

    A row of 10 numbers takes two vectors of 8 lanes; 4 of them take 5 as one line. Every turn takes such a round.
    """
    *outer, width = nest.space or (0,)
    lanes = vector_bits // (8 * nest.widest)
    turn = math.lcm(width or 1, lanes)
    body = cost_of_a_turn(nest)
    if not outer or width > 4 * lanes or not width % lanes or turn > _MOST_VECTORS * lanes:
        return nest
    for rows, height in enumerate(outer):
        joint = [(strides[rows], strides[-1]) for strides in strides_of(nest)]
        again = [number for number, (far, near) in enumerate(joint) if near and not far]
        in_line = all(far == near * width for number, (far, near) in enumerate(joint) if number not in again)
        same = all((rows in reduction.axes) == (len(outer) in reduction.axes) for reduction in nest.reductions)
        reads = range(len(nest.reads))
        if again and in_line and same and all(k in reads for k in again) and height * width >= turn:
            if body * turn // lanes > _MOST_COST:
                return nest
            return _one_line(nest, rows, set(again))
    return nest


def _one_line(nest: Nest, rows: int, again: set[int]) -> Nest:
    kept = [axis for axis in range(len(nest.space)) if axis != rows]
    space = (*(nest.space[axis] for axis in kept[:-1]), nest.space[rows] * nest.space[-1])

    def along(strides: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(strides[axis] for axis in kept)

    return replace(
        nest,
        space=space,
        reads=tuple(
            replace(read, strides=along(read.strides), period=nest.space[-1] if number in again else 0)
            for number, read in enumerate(nest.reads)
        ),
        writes=tuple(replace(write, strides=along(write.strides)) for write in nest.writes),
        reductions=tuple(
            replace(
                reduction,
                strides=along(reduction.strides),
                axes=frozenset(kept.index(axis) for axis in reduction.axes if axis != rows),
            )
            for reduction in nest.reductions
        ),
    )
