"""One block of memory for the buffers that a plan keeps: which bytes of it each buffer has.

Buffers that are never alive together may share bytes, whatever their types. Largest first, each at the lowest offset where
it fits beside those placed before that are alive when it is; a buffer begins on a cache line.
"""

from dataclasses import dataclass
from itertools import accumulate

from pullback.ir.graph import Var
from pullback.planning.liveness import analyse
from pullback.planning.schedule import Schedule

#: Bytes of a cache line, and the alignment that the widest vector loads like best.
ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Arena:
    """Offsets of the buffers that share the block, and its size. What is returned to callers has memory of its own."""

    offsets: dict[int, int]
    nbytes: int


def lay_out(schedule: Schedule) -> Arena:
    """Offsets for the kept buffers that no caller gets to see."""
    spans = lifetimes(schedule)
    inner = [buffer for buffer in schedule.kept if buffer not in schedule.output_buffers and buffer in spans]
    sizes = {buffer: _aligned(schedule.buffers[buffer].nbytes) for buffer in inner}
    placed: list[int] = []
    offsets: dict[int, int] = {}
    for buffer in sorted(inner, key=lambda number: (-sizes[number], number)):
        first, last = spans[buffer]
        neighbours = sorted(
            (offsets[other], offsets[other] + sizes[other])
            for other in placed
            if spans[other][0] <= last and first <= spans[other][1]
        )
        offset = 0
        for begin, end in neighbours:
            if begin - offset >= sizes[buffer]:
                break
            offset = max(offset, end)
        offsets[buffer] = offset
        placed.append(buffer)
    return Arena(offsets, max((offsets[buffer] + sizes[buffer] for buffer in inner), default=0))


def lifetimes(schedule: Schedule) -> dict[int, tuple[int, int]]:
    """For each buffer the first step that writes to it, and the last that needs what is in it."""
    liveness = analyse(schedule.graph)
    spans: dict[int, tuple[int, int]] = {}

    def extend(buffer: int, first: int, last: int) -> None:
        begin, end = spans.get(buffer, (first, last))
        spans[buffer] = (min(begin, first), max(end, last))

    for position, step in enumerate(schedule.steps):
        for buffer in step.scratch:
            extend(buffer, position, position)
        for var, place in zip(step.node.outputs, step.places, strict=True):
            if place.buffer is not None:
                extend(place.buffer, position, max(position, _last_use(var, liveness.last_use)))
    return spans


def peak_bytes(schedule: Schedule) -> int:
    """The most bytes that are needed at once for buffers, if each were given back as soon as its values are dead."""
    steps = len(schedule.steps)
    change = [0] * (steps + 2)
    for buffer, (first, last) in lifetimes(schedule).items():
        nbytes = schedule.buffers[buffer].nbytes
        change[first] += nbytes
        change[min(last, steps) + 1] -= nbytes
    return max(accumulate(change), default=0)


def _last_use(var: Var, last_use: dict[Var, int]) -> int:
    return last_use.get(var, -1)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
