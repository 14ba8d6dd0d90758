"""Passes: nests that a kernel computes at once.

A kernel keeps sums over one set of axes, and over all of them beside those. What is reduced over other axes is computed in a
pass of its own, which reads all again. What is written comes last: it may be the memory of what is read.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from pullback.backends.llvm.accumulators import starting_value
from pullback.backends.nests.axes import Axis, axes_of, merged, strides_of, with_axes
from pullback.backends.nests.nest import Constant, Nest, NestRead, NestWrite, Reduction, Step
from pullback.rules.activations import identity


def with_fewest_axes(nest: Nest) -> Nest:
    """The same nest over axes merged, without those of one element but for the last: there is always an axis."""
    axes = merged([axis for axis in axes_of(nest) if axis.size != 1])
    alone = Axis(1, (0,) * len(strides_of(nest)), (False,) * len(nest.reductions))
    return _without_reductions_of_one(with_axes(nest, axes or [alone]))


def _without_reductions_of_one(nest: Nest) -> Nest:
    """Reductions over no axis are stores of their values."""
    steps, writes = list(nest.steps), list(nest.writes)
    for reduction in nest.reductions:
        if not reduction.axes:
            dtype = nest.dtype_of(reduction.value)
            steps.append(Step(identity, (reduction.value,), (dtype,), reduction.dtype))
            number = len(nest.reads) + len(steps) - 1
            writes.append(NestWrite(number, reduction.pointer, reduction.strides, reduction.dtype))
    reductions = tuple(reduction for reduction in nest.reductions if reduction.axes)
    return replace(nest, steps=tuple(steps), writes=tuple(writes), reductions=reductions)


def passes(nest: Nest) -> list[Nest]:
    """The nests of few axes that together compute a nest, in order."""
    if math.prod(nest.space) == 0:
        return [_filling(nest, reduction) for reduction in nest.reductions if math.prod(_kept(nest, reduction))]
    small = with_fewest_axes(nest)
    every = frozenset(range(len(small.space)))
    of_axes: dict[frozenset[int], list[Reduction]] = {}
    for reduction in small.reductions:
        of_axes.setdefault(reduction.axes, []).append(reduction)
    totals = of_axes.pop(every, [])
    *before, last = of_axes.values() if of_axes else [[]]
    found = [small.computing((), tuple(reductions)) for reductions in before]
    found.append(small.computing(small.writes, (*last, *totals)))
    return [with_fewest_axes(one) for one in found]


def own_axes(nest: Nest) -> frozenset[int]:
    """The axes that the reductions of a pass reduce, apart from those that reduce all beside them; all if only those do."""
    every = frozenset(range(len(nest.space)))
    return next(
        (reduction.axes for reduction in nest.reductions if reduction.axes != every),
        every if nest.reductions else frozenset(),
    )


def needed_in(nest: Nest, stage: int) -> set[int]:
    """The values that are computed in a stage of a nest: what it stores and reduces there, and what that is made of."""
    stages, first = nest.stages(), len(nest.reads)
    needed = {value for value in nest.results if stages[value] == stage}
    for number in reversed(range(len(stages))):
        if number in needed and number >= first:
            needed.update(one for one in nest.steps[number - first].operands if not isinstance(one, Constant))
        elif number in needed:
            needed.update(position.value for position in nest.reads[number].positions)
    return needed


def cut_steps(nest: Nest, most: int) -> tuple[int, list[int]]:
    """A number of first steps, at most so many, of which later ones and results need few values; and these values."""
    first = len(nest.reads)
    last_use: dict[int, int] = {}
    for number, step in enumerate(nest.steps):
        last_use.update((one, number) for one in step.operands if not isinstance(one, Constant))
    results = [*(write.value for write in nest.writes), *(reduction.value for reduction in nest.reductions)]
    last_use.update(dict.fromkeys(results, len(nest.steps)))

    def needed(before: int) -> list[int]:
        return [value for value in range(first, first + before) if last_use.get(value, -1) >= before]

    before = min(range(most, most // 2, -1), key=lambda count: len(needed(count)))
    return before, needed(before)


def without_steps(nest: Nest, before: int, pointers: Mapping[int, int], strides: tuple[int, ...]) -> Nest:
    """A nest that reads, at these pointers, values of its first steps instead of computing them."""
    first = len(nest.reads)
    reads = [*nest.reads, *(NestRead(pointer, strides, nest.dtype_of(value)) for value, pointer in pointers.items())]
    numbers = {value: first + place for place, value in enumerate(pointers)}
    numbers |= {value: value for value in range(first)}
    numbers |= {first + before + place: len(reads) + place for place in range(len(nest.steps) - before)}
    steps = tuple(
        replace(step, operands=tuple(one if isinstance(one, Constant) else numbers[one] for one in step.operands))
        for step in nest.steps[before:]
    )
    writes = tuple(replace(write, value=numbers[write.value]) for write in nest.writes)
    reductions = tuple(replace(reduction, value=numbers[reduction.value]) for reduction in nest.reductions)
    return Nest(nest.space, tuple(reads), steps, writes, reductions)


def _kept(nest: Nest, reduction: Reduction) -> tuple[int, ...]:
    return tuple(size for axis, size in enumerate(nest.space) if axis not in reduction.axes)


def _filling(nest: Nest, reduction: Reduction) -> Nest:
    """A reduction of nothing: its result is what it starts from."""
    nothing = 0 if reduction.kind == "sum" else starting_value(reduction.kind, reduction.dtype)
    strides = tuple(stride for axis, stride in enumerate(reduction.strides) if axis not in reduction.axes)
    step = Step(identity, (Constant(nothing),), (reduction.dtype,), reduction.dtype)
    write = NestWrite(0, reduction.pointer, strides, reduction.dtype)
    return with_fewest_axes(Nest(_kept(nest, reduction), (), (step,), (write,), ()))
