"""The loops of a nest: which axis in which order, how much of it in one turn, and where reductions are kept meanwhile.

    sum of a line              span of the line (a block of the sum) > walk along it, 4 vectors a turn
    sums of rows               walk over rows > walk along the row
    sums of columns            walk along the columns, 4 vectors a turn > walk over rows
    both, or the total too     span of columns (a strip) > span of rows (a block) > walk over rows > walk along the row

A *walk* binds an axis: every turn computes some positions along it. A *span* outside it bounds how far the walk goes before
something is done about the reductions inside.
"""

import math
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from pullback.backends.native.kernels.costs import cost_of_a_turn, has_chains, is_long
from pullback.backends.nests.nest import Nest, NestRead, NestWrite, Reduction
from pullback.dataclass import dataclass

#: So many numbers at most are added to one accumulator one after the other; then it is added to another of more precision.
BLOCK = 128

#: Bytes of a strip of columns whose sums are kept on the stack; those of blocks take twice as much beside them. What comes
#: from memory is read in long pieces (8 rows a turn and 16 KB: 27 GB/s; 4 rows: 22; 4 KB: 21), what comes from the second
#: level of the cache in short ones, between which the sums stay in the first level (4 rows and 4 KB: 68 GB/s; 16 KB: 40).
STRIP = 1 << 12
FAR_STRIP = 1 << 14

#: Accumulators that are enough to hide the latency of additions: 4 cycles, two a cycle.
CHAINS = 8

#: Bytes of a matrix that is near enough to be walked down column by column.
_NEAR = 1 << 17

#: Bytes of what comes from memory.
_FAR = 1 << 23

#: Instructions, about, up to which bodies are repeated instead of looped over.
_UNROLLED = 64
_TURNED = 256
_MOST_COPIES = 16

#: Vectors of a nest in which the chains of a long body are what takes time: two bodies are done by turns, operation by
#: operation, since a core looks ahead no further than one. The gates of 32 cells of an LSTM take 66 ns instead of 96.
_FEW = 4

#: Bits of the widest registers of which vectors of nests with elementary functions take two. The instructions of both halves follow
#: each other, while a core looks ahead no further than one such body: exp, log and tanh take a sixth less time, erf a third.
_PAIRED_BITS = 256


@dataclass(frozen=True, slots=True)
class Span:
    """A loop over stretches of an axis that a walk further in goes along; a multiple of what one turn of that takes."""

    axis: int
    length: int


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop along an axis: some positions a turn, each of `unit` elements (the lanes of a vector, else 1)."""

    axis: int
    unit: int
    copies: int

    @property
    def length(self) -> int:
        """Elements that one turn takes."""
        return self.unit * self.copies


Loop: TypeAlias = Span | Walk


@dataclass(frozen=True, slots=True)
class AccumulatorStorage:
    """The storage of a reduction while the loops run; depths count the loops outside.

    In registers between `begins` and its end there; with a `block` what was added since that depth goes to a second
    accumulator of more precision, which begins at `begins`. A reduction with `returns` visits its result that many
    more times and adds to it. One `on_stack` has an accumulator for every column of a strip.
    """

    begins: int
    block: int | None
    returns: int
    on_stack: bool
    partials: int


@dataclass(frozen=True, slots=True)
class Tiling:
    """The loops, outermost first; the lanes of a vector; how each reduction is kept."""

    loops: tuple[Loop, ...]
    lanes: int
    keeping: tuple[AccumulatorStorage, ...]
    across: int | None = None
    """The axis that some operands are contiguous along which are not along the vectors: these are transposed by squares."""

    def walk_depth(self, axis: int) -> int:
        """The number of loops that are open once an axis is bound."""
        return next(depth + 1 for depth, loop in enumerate(self.loops) if isinstance(loop, Walk) and loop.axis == axis)


def tile(nest: Nest, vector_bits: int) -> Tiling:
    """Loops for a nest of few axes; there must be points in its space."""
    if not nest.space:
        kept = tuple(AccumulatorStorage(0, None, returns=0, on_stack=False, partials=1) for _ in nest.reductions)
        return Tiling((), 1, kept)
    lanes = _lanes(nest, vector_bits)
    across = _across(nest, lanes)
    if across is None and not nest.period and _takes_pairs(nest, lanes, vector_bits):
        lanes *= 2
    if nest.period:
        walks = _walks_by_periods(nest, lanes)
    elif across is not None:
        walks = _walks_by_squares(nest, lanes, across)
    else:
        walks = _walks(nest, lanes)
    loops, on_stack = _arranged(nest, walks, fixed=across is not None or nest.period > 0)
    keeping = tuple(_kept(nest, loops, reduction, on_stack=on_stack) for reduction in nest.reductions)
    return Tiling(tuple(loops), lanes, keeping, across)


def _arranged(nest: Nest, walks: list[Walk], *, fixed: bool) -> tuple[list[Loop], bool]:
    """Walks in the order that suits the reductions, with spans; and whether sums of columns are on the stack.

    That takes turns of other lengths, so it is not for those that are fixed.
    """
    # A walk of one turn is no loop: outside the others it lets values that vary along it alone be computed once.
    once = [walk for walk in walks if walk.length >= nest.space[walk.axis]]
    again = [walk for walk in walks if walk not in once]
    along = len(nest.space) - 1
    inside = {reduction.axes & {walk.axis for walk in again} for reduction in nest.reductions} - {frozenset()}
    if len(inside) == 1:
        (axes,) = inside
        reduced = [walk for walk in again if walk.axis in axes]
        kept = [walk for walk in again if walk.axis not in axes]
        height = math.prod(nest.space[axis] for axis in axes)
        far = height * nest.space[along] * nest.widest > _NEAR
        if far and kept and kept[-1].axis == along and not fixed:
            return _with_strips(nest, [*once, *kept[:-1]], reduced, kept[-1]), True
        return _with_blocks(nest, [*once, *kept, *reduced]), False
    if len(inside) > 1 and len(again) == 2 and again[-1].axis == along and not fixed:
        rows, line = again
        return _with_strips(nest, once, [rows], line), True
    return _with_blocks(nest, [*once, *again]), False


def _across(nest: Nest, lanes: int) -> int | None:
    """The axis along which operands are contiguous that are not so along the last, if squares are worth transposing."""
    along = len(nest.space) - 1
    if nest.period or lanes < 2 or lanes * cost_of_a_turn(nest) > _TURNED:
        return None
    strides = [read.strides for read in nest.reads] + [write.strides for write in nest.writes]
    found = [
        next((axis for axis in range(along) if own[axis] == 1 and nest.space[axis] >= min(lanes, 4)), None)
        for own in strides
        if abs(own[along]) > 1
    ]
    axes = [axis for axis in found if axis is not None]
    return max(set(axes), key=axes.count) if axes else None


def _walks_by_periods(nest: Nest, lanes: int) -> list[Walk]:
    """Every turn takes as many vectors as it takes until a period ends where a vector does."""
    along = len(nest.space) - 1
    turn = Walk(along, lanes, nest.period // math.gcd(nest.period, lanes))
    return [*(Walk(axis, 1, 1) for axis in range(along)), turn]


def _walks_by_squares(nest: Nest, lanes: int, across: int) -> list[Walk]:
    along = len(nest.space) - 1
    square = [Walk(across, 1, min(lanes, nest.space[across])), Walk(along, lanes, 1)]
    operands: list[NestRead | NestWrite] = [*nest.reads, *nest.writes]
    transposed = [one.strides for one in operands if one.strides[across] == 1 and abs(one.strides[along]) > 1]
    # Along axes that nothing varies along that is transposed, a square serves again and again; sums would come by their results.
    again = [axis for axis in range(along) if axis != across and not any(strides[axis] for strides in transposed)]
    again = [] if nest.reductions else again
    outside = [Walk(axis, 1, 1) for axis in range(along) if axis != across and axis not in again]
    return [*outside, *square, *(Walk(axis, 1, 1) for axis in again)]


def _lanes(nest: Nest, vector_bits: int) -> int:
    """The number of lanes: as many as the widest dtype allows, at most the power of two that holds the line."""
    line = 1 << (nest.space[-1] - 1).bit_length()
    return min(vector_bits // (8 * nest.widest), line)


def _takes_pairs(nest: Nest, lanes: int, vector_bits: int) -> bool:
    """True if a vector is two registers: for elementary functions, along lines that leave few lanes of such vectors idle."""
    registers = math.ceil(nest.space[-1] / lanes)
    if vector_bits > _PAIRED_BITS or not has_chains(nest) or math.prod(nest.space[:-1]) * registers <= _FEW:
        return False
    return registers % 2 == 0 or registers >= 8


def _walks(nest: Nest, lanes: int) -> list[Walk]:
    """Walks over all axes in their order; a turn takes several positions where bodies are cheap, all where they are few."""
    along = len(nest.space) - 1
    body = cost_of_a_turn(nest)
    vectors = math.ceil(nest.space[along] / lanes)
    copies = max(1, min(4, 32 // body, vectors))
    if vectors <= _MOST_COPIES and vectors * body <= _UNROLLED:
        copies = vectors
    elif is_long(nest) and vectors > 1 and math.prod(nest.space[:along]) * vectors <= _FEW:
        copies = 2
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


def _with_strips(nest: Nest, outside: list[Walk], reduced: list[Walk], line: Walk) -> list[Loop]:
    """Columns are summed by strips of them, whose sums are on the stack; each row is gone along as far as the strip."""
    body = cost_of_a_turn(nest)
    *outer, rows = reduced
    # Sums along the rows too have an accumulator in registers for each row of a turn.
    far = math.prod(nest.space) * nest.widest > _FAR
    together = 8 if far and not any(line.axis in reduction.axes for reduction in nest.reductions) else 4
    rows = replace(rows, copies=max(1, min(together, 4 * together // body, nest.space[rows.axis])))
    line = replace(line, copies=max(1, min(2, 8 * together // (body * rows.copies))))
    walks = [*outer, rows]
    strip = (FAR_STRIP if far else STRIP) // nest.widest // line.length * line.length
    block = _block([(nest.space[walk.axis], walk) for walk in walks], 1.0)
    loops: list[Loop] = [*outside, *walks, line]
    if block is not None:
        loops.insert(len(outside) + block[0], block[1])
    if nest.space[line.axis] > strip:
        loops.insert(len(outside), Span(line.axis, strip))
    return loops


def _with_blocks(nest: Nest, walks: list[Walk]) -> list[Loop]:
    """Walks, and a span so that no accumulator of a sum takes more than a block."""
    loops: list[Loop] = list(walks)
    sums = [reduction for reduction in nest.reductions if is_float_sum(reduction)]
    if sums:
        terms = max(_terms_of_a_turn(nest, walks, reduction) for reduction in sums)
        outermost = min(_begins(reduction, walks) for reduction in sums)
        block = _block([(nest.space[walk.axis], walk) for walk in walks[outermost:]], terms)
        if block is not None:
            loops.insert(outermost + block[0], block[1])
    return loops


def _block(walks: list[tuple[int, Walk]], terms: float) -> tuple[int, Span] | None:
    """The span that bounds how many terms an accumulator takes in walks of given sizes, and which of them it is around."""
    for number in reversed(range(len(walks))):
        size, walk = walks[number]
        turns = math.ceil(size / walk.length)
        if terms * turns > BLOCK:
            block = max(1, int(BLOCK / terms))
            return (number, Span(walk.axis, block * walk.length)) if block < turns else None
        terms *= turns
    return None


def is_float_sum(reduction: Reduction) -> bool:
    """True for a sum of floats, whose value depends on the order and the number of its terms."""
    return reduction.kind == "sum" and np.dtype(reduction.dtype).kind == "f"


def _begins(reduction: Reduction, loops: "list[Walk] | list[Loop]") -> int:
    """The depth at which everything is bound that a reduction keeps."""
    return max(
        (depth + 1 for depth, loop in enumerate(loops) if isinstance(loop, Walk) and loop.axis not in reduction.axes),
        default=0,
    )


def _terms_of_a_turn(nest: Nest, loops: "list[Walk] | list[Loop]", reduction: Reduction) -> float:
    """The number of terms that one accumulator takes in one turn of all walks."""
    copies = _copies(loops, reduction, kept=False)
    return copies / _partials(nest, loops, reduction)


def _copies(loops: "list[Walk] | list[Loop]", reduction: Reduction, *, kept: bool) -> int:
    return math.prod(
        loop.copies for loop in loops if isinstance(loop, Walk) and (loop.axis not in reduction.axes) == kept
    )


def _partials(nest: Nest, loops: "list[Walk] | list[Loop]", reduction: Reduction) -> int:
    chains = len(nest.reductions) * _copies(loops, reduction, kept=True)
    return min(_copies(loops, reduction, kept=False), max(1, CHAINS // chains), 4)


def _kept(nest: Nest, loops: list[Loop], reduction: Reduction, *, on_stack: bool) -> AccumulatorStorage:
    begins, turns = _begins(reduction, loops), _turns(nest, loops)
    again = [loop.axis in reduction.axes and loop.length < nest.space[loop.axis] for loop in loops]
    if on_stack and len(nest.space) - 1 not in reduction.axes and any(again):
        spans = [depth for depth, loop in enumerate(loops) if isinstance(loop, Span) and loop.axis in reduction.axes]
        block = spans[0] + 1 if spans and is_float_sum(reduction) else None
        return AccumulatorStorage(again.index(True), block, returns=0, on_stack=True, partials=1)
    block = begins
    if is_float_sum(reduction):
        terms = _terms_of_a_turn(nest, loops, reduction)
        while block < len(loops) and terms * math.prod(turns[block:]) > BLOCK:
            block += 1
    times = math.prod(turns[depth] for depth in range(begins) if again[depth])
    return AccumulatorStorage(
        begins,
        block if block > begins else None,
        returns=times - 1,
        on_stack=False,
        partials=_partials(nest, loops, reduction),
    )


def _turns(nest: Nest, loops: list[Loop]) -> list[int]:
    """The number of times that each loop turns: to the end of its axis, or of the span around it."""
    turns = []
    for number, loop in enumerate(loops):
        around = [span.length for span in loops[:number] if span.axis == loop.axis]
        turns.append(math.ceil((around[-1] if around else nest.space[loop.axis]) / loop.length))
    return turns
