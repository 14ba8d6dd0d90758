"""The loops of a nest: which axis in which order, how much of it in one turn, and where reductions are kept meanwhile.

    sum of a line              span of the line (a block of the sum) > walk along it, 4 vectors a turn
    sums of rows               walk over rows > walk along the row
    sums of columns            walk along the columns, 4 vectors a turn > walk over rows
    both, or the total too     span of columns (a strip) > span of rows (a block) > walk over rows > walk along the row

A *walk* binds an axis: every turn computes some positions along it. A *span* outside it bounds how far the walk goes before
something is done about the reductions inside.
"""

import math
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np

from pullback.backends.native.elementary import scalars
from pullback.backends.native.kernels.nest import Nest, Reduction

#: So many numbers at most are added to one accumulator one after the other; then it is added to another of more precision.
BLOCK = 128

#: Numbers in a strip of columns whose sums are kept on the stack, with 12 bytes for each f32, 24 for each f64.
STRIP = 1024

#: Accumulators that are enough to hide the latency of additions: 4 cycles, two a cycle.
CHAINS = 8

#: Instructions, about, up to which bodies are repeated instead of looped over.
_UNROLLED = 64
_MOST_COPIES = 16


@dataclass(frozen=True, slots=True)
class Span:
    """A loop over stretches of an axis that a walk further in goes along; a multiple of what one turn of that takes."""

    axis: int
    length: int


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop along an axis: so many positions a turn, each of `unit` elements (the lanes of a vector, else 1)."""

    axis: int
    unit: int
    copies: int

    @property
    def length(self) -> int:
        """Elements that one turn takes."""
        return self.unit * self.copies


Loop: TypeAlias = Span | Walk


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where a reduction is kept while the loops run; depths count the loops outside.

    In registers between `begins` and its end there; with a `block` what was added since that depth goes to a second
    accumulator of more precision, which begins at `begins`. A reduction that `returns` comes by its result several times
    and adds to what is there. One `on_stack` has an accumulator for every column of a strip.
    """

    begins: int
    block: int | None
    returns: bool
    on_stack: bool
    partials: int


@dataclass(frozen=True, slots=True)
class Tiling:
    """The loops, outermost first; the lanes of a vector; how each reduction is kept."""

    loops: tuple[Loop, ...]
    lanes: int
    keeping: tuple[Keeping, ...]

    def walk_depth(self, axis: int) -> int:
        """How many loops are open once an axis is bound."""
        return next(depth + 1 for depth, loop in enumerate(self.loops) if isinstance(loop, Walk) and loop.axis == axis)


def tile(nest: Nest, vector_bits: int) -> Tiling:
    """Loops for a nest of few axes; there must be points in its space."""
    if not nest.space:
        kept = tuple(Keeping(0, None, returns=False, on_stack=False, partials=1) for _ in nest.reductions)
        return Tiling((), 1, kept)
    along = len(nest.space) - 1
    lanes = _lanes(nest, vector_bits)
    walks = _walks(nest, lanes)
    by_columns = [reduction for reduction in nest.reductions if reduction.axes and along not in reduction.axes]
    if by_columns and all(reduction.axes == by_columns[0].axes for reduction in nest.reductions):
        inside = by_columns[0].axes
        loops = [*(walk for walk in walks if walk.axis not in inside), *(walk for walk in walks if walk.axis in inside)]
        return _with_blocks(nest, lanes, loops, on_stack=False)
    if by_columns and len(nest.space) == 2:
        rows, line = walks
        return _with_strips(nest, lanes, rows, line)
    return _with_blocks(nest, lanes, walks, on_stack=False)


def _lanes(nest: Nest, vector_bits: int) -> int:
    """As many as the widest dtype of what varies over the space leaves; no more than a power of two that holds the line."""
    depends = nest.axes_of_values()
    dtypes = [read.dtype for read in nest.reads if any(read.strides)]
    for number, step in enumerate(nest.steps, len(nest.reads)):
        if depends[number]:
            dtypes.append(step.dtype)
            dtypes += step.operand_dtypes
    dtypes += [write.dtype for write in nest.writes]
    dtypes += [reduction.dtype for reduction in nest.reductions]
    widest = max(4, max((dtype.itemsize for dtype in dtypes), default=4))
    line = 1 << (nest.space[-1] - 1).bit_length()
    return min(vector_bits // (8 * widest), line)


def _walks(nest: Nest, lanes: int) -> list[Walk]:
    """Walks over all axes in their order; a turn takes several positions where bodies are cheap, all where they are few."""
    along = len(nest.space) - 1
    body = (
        1
        + len(nest.reads)
        + len(nest.writes)
        + len(nest.reductions)
        + sum(scalars.cost(step.primitive, step.dtype) for step in nest.steps)
    )
    vectors = math.ceil(nest.space[along] / lanes)
    copies = max(1, min(4, 32 // body, vectors))
    if vectors <= _MOST_COPIES and vectors * body <= _UNROLLED:
        copies = vectors
    walks = [Walk(along, lanes, copies)]
    whole = copies == vectors
    for axis in reversed(range(along)):
        repeated = 1
        if whole:
            room = min(_MOST_COPIES // copies, _UNROLLED // (copies * body))
            repeated = nest.space[axis] if nest.space[axis] <= room else max(1, min(4 // copies, room))
            copies *= repeated
            whole = repeated == nest.space[axis]
        walks.insert(0, Walk(axis, 1, repeated))
    return walks


def _with_strips(nest: Nest, lanes: int, rows: Walk, line: Walk) -> Tiling:
    """Sums along rows and along columns of one matrix: by strips of columns, whose sums are on the stack."""
    width, height = nest.space[line.axis], nest.space[rows.axis]
    strip = max(1, STRIP // line.length) * line.length
    loops: list[Loop] = [rows, line]
    if height > BLOCK:
        loops.insert(0, Span(rows.axis, max(1, BLOCK // rows.length) * rows.length))
    if width > strip:
        loops.insert(0, Span(line.axis, strip))
    return Tiling(tuple(loops), lanes, tuple(_kept(nest, loops, one, on_stack=True) for one in nest.reductions))


def _with_blocks(nest: Nest, lanes: int, walks: list[Walk], *, on_stack: bool) -> Tiling:
    """Walks, and a span so that no accumulator of a sum takes more than a block."""
    loops: list[Loop] = list(walks)
    terms = 1.0
    for depth in reversed(range(len(walks))):
        walk = walks[depth]
        users = [
            reduction for reduction in nest.reductions if is_float_sum(reduction) and depth >= _begins(reduction, walks)
        ]
        if not users:
            break
        turns = math.ceil(nest.space[walk.axis] / walk.length)
        copies = max(_terms_of_a_turn(nest, walks, reduction) for reduction in users)
        if terms * turns * copies > BLOCK:
            block = max(1, int(BLOCK / (terms * copies)))
            if block < turns:
                loops.insert(depth, Span(walk.axis, block * walk.length))
            break
        terms *= turns
    return Tiling(tuple(loops), lanes, tuple(_kept(nest, loops, one, on_stack=on_stack) for one in nest.reductions))


def is_float_sum(reduction: Reduction) -> bool:
    """Whether the order of its terms matters to a reduction, and how many there are."""
    return reduction.kind == "sum" and np.dtype(reduction.dtype).kind == "f"


def _begins(reduction: Reduction, loops: "list[Walk] | list[Loop]") -> int:
    """The depth at which everything is bound that a reduction keeps."""
    return max(
        (depth + 1 for depth, loop in enumerate(loops) if isinstance(loop, Walk) and loop.axis not in reduction.axes),
        default=0,
    )


def _terms_of_a_turn(nest: Nest, loops: "list[Walk] | list[Loop]", reduction: Reduction) -> float:
    """How many terms one accumulator takes in one turn of all walks."""
    copies = _copies(loops, reduction, kept=False)
    return copies / _partials(nest, loops, reduction)


def _copies(loops: "list[Walk] | list[Loop]", reduction: Reduction, *, kept: bool) -> int:
    return math.prod(
        loop.copies for loop in loops if isinstance(loop, Walk) and (loop.axis not in reduction.axes) == kept
    )


def _partials(nest: Nest, loops: "list[Walk] | list[Loop]", reduction: Reduction) -> int:
    chains = len(nest.reductions) * _copies(loops, reduction, kept=True)
    return min(_copies(loops, reduction, kept=False), max(1, CHAINS // chains), 4)


def _kept(nest: Nest, loops: list[Loop], reduction: Reduction, *, on_stack: bool) -> Keeping:
    begins = _begins(reduction, loops)
    outside = [loop for loop in loops[:begins] if loop.axis in reduction.axes]
    along = len(nest.space) - 1
    if on_stack and reduction.axes and along not in reduction.axes:
        spans = [depth for depth, loop in enumerate(loops) if isinstance(loop, Span) and loop.axis in reduction.axes]
        begins = next(depth for depth, loop in enumerate(loops) if loop.axis in reduction.axes)
        block = spans[0] + 1 if spans and is_float_sum(reduction) else None
        return Keeping(begins, block, returns=False, on_stack=True, partials=1)
    block = begins
    if is_float_sum(reduction):
        while block < len(loops) and _terms(nest, loops, reduction, block) > BLOCK:
            block += 1
    return Keeping(
        begins,
        block if block > begins else None,
        returns=bool(outside),
        on_stack=False,
        partials=_partials(nest, loops, reduction),
    )


def _terms(nest: Nest, loops: list[Loop], reduction: Reduction, depth: int) -> float:
    """How many terms one accumulator takes that lives inside so many loops."""
    turns = [math.ceil(_reach(nest, loops, number) / loop.length) for number, loop in enumerate(loops)]
    return reduce(lambda total, turn: total * turn, turns[depth:], _terms_of_a_turn(nest, loops, reduction))


def _reach(nest: Nest, loops: list[Loop], number: int) -> int:
    """How far a loop goes: to the end of its axis, or of the span around it."""
    around = [loop.length for loop in loops[:number] if loop.axis == loops[number].axis]
    return around[-1] if around else nest.space[loops[number].axis]
