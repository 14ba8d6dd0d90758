"""The order in which missing commits of a branch are measured. Pure: places on the branch in, places out.

Places count from 0, the oldest commit that is looked at; `known` are those that have a result, or a job for one.
"""

from collections.abc import Collection, Iterator
from heapq import heapify, heappop, heappush
from itertools import pairwise


def newest_first(places: int, known: Collection[int]) -> Iterator[int]:
    """Order commits from the newest one backwards."""
    return (place for place in range(places - 1, -1, -1) if place not in known)


def widest_gap_first(places: int, known: Collection[int]) -> Iterator[int]:
    """The newest, the oldest, then always the middle of the widest gap, the newer one of gaps alike.

    After k of them no gap is wider than about n / k, so a change shows between ever closer commits, as in a bisection
    whose question is not known yet.
    """
    measured = set(known)
    for end in (places - 1, 0):
        if places and end not in measured:
            measured.add(end)
            yield end
    gaps = [(older - newer, -newer) for older, newer in pairwise(sorted(measured))]
    heapify(gaps)
    while gaps:
        negative_width, negative_newer = heappop(gaps)
        newer, older = -negative_newer, -negative_newer + negative_width
        if newer - older < 2:
            return  # the widest gap is none: neighbours
        middle = (older + newer + 1) // 2
        yield middle
        for low, high in ((older, middle), (middle, newer)):
            heappush(gaps, (low - high, -high))
