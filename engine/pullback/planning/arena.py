"""One block of memory for the buffers that a plan keeps: which bytes of it each buffer has.

Buffers that are never alive together may share bytes, whatever their types. Largest first, each at the lowest offset where
it fits beside those placed before that are alive when it is; a buffer begins on a cache line.
"""

from collections.abc import Mapping
from itertools import accumulate

import numpy as np

from pullback.dataclass import dataclass
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
    return placed({buffer: schedule.buffers[buffer].nbytes for buffer in inner}, spans)


def placed(nbytes: Mapping[int, int], spans: Mapping[int, tuple[int, int]]) -> Arena:
    """Offsets of buffers of these sizes that are alive from one step to another."""
    sizes = {buffer: _aligned(size) for buffer, size in nbytes.items()}
    block = PlacedBuffers(len(sizes))
    offsets = {
        buffer: block.add(sizes[buffer], *spans[buffer])
        for buffer in sorted(sizes, key=lambda number: (-sizes[number], number))
    }
    return Arena(offsets, max((offsets[buffer] + sizes[buffer] for buffer in sizes), default=0))


class PlacedBuffers:
    """The buffers that have their place, in the order of their offsets.

    As columns, because thousands may be alive at once and each new one is compared with all of them.
    """

    def __init__(self, most: int) -> None:
        self._count = 0
        self._columns = np.empty((4, most), np.int64)  # begin, end, first step, last step

    def add(self, nbytes: int, first: int, last: int) -> int:
        """The lowest offset at which a buffer fits beside those that are alive when it is."""
        begins, ends, firsts, lasts = self._columns[:, : self._count]
        alive = (firsts <= last) & (first <= lasts)
        floors = np.maximum.accumulate(np.concatenate([[0], ends[alive]]))  # where a gap would begin
        fitting = np.flatnonzero(begins[alive] - floors[:-1] >= nbytes)
        offset = int(floors[fitting[0] if fitting.size else -1])
        place = int(np.searchsorted(begins, offset))
        self._columns[:, place + 1 : self._count + 1] = self._columns[:, place : self._count].copy()
        self._columns[:, place] = offset, offset + nbytes, first, last
        self._count += 1
        return offset


def lifetimes(schedule: Schedule) -> dict[int, tuple[int, int]]:
    """Lifetime of each buffer: the first step that writes to it and the last that reads it."""
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
