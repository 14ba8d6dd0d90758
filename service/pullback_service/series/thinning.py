"""Fewer marks than there are points, for a plot that looks the same. Pure.

Points in order are cut into buckets of equal counts, and of each bucket are kept the first, the last, and for every trace
the lowest and the highest: M4 (Jugel, Jerzak, Hackenbroich, Markl: VLDB 2014, M4: a visualization-oriented time series
data aggregation), whose line differs from the full one by nothing that is wider than a bucket. LTTB was not chosen: it
keeps one point of a bucket, and of a spike up next to a spike down it drops one.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise

FEWEST_MARKS = 16


def thin_marks(values: Sequence[float], log_ratios: Sequence[float | None], at_most: int) -> list[int]:
    """Places of at most so many marks of a series whose plots look like those of all: that of its values, and that of its ratios if it has any."""
    return thin([values] if all(ratio is None for ratio in log_ratios) else [values, log_ratios], at_most)


def thin(traces: Sequence[Sequence[float | None]], at_most: int, *, keep: Collection[int] = ()) -> list[int]:
    """Places of the points to show, in order: at most `at_most`, all of them where they are as few.

    Each trace has a value, or None, for every point. The first and the last point, and those of every trace's lowest
    and highest value, stay. So do the places to `keep` (both sides of a change, say), of which there may be up to half
    as many as marks.
    """
    count = len(traces[0])
    if any(len(trace) != count for trace in traces):
        raise ValueError("Traces of different lengths have no common points.")
    places = {place for place in keep if 0 <= place < count}
    of_bucket = 2 + 2 * len(traces)
    if at_most < FEWEST_MARKS or len(places) > at_most // 2 or of_bucket > at_most // 2:
        raise ValueError(
            f"{at_most} marks are too few for {len(places)} that must be kept: allow {max(FEWEST_MARKS, 2 * len(places))} or more."
        )
    if count <= at_most:
        return list(range(count))
    buckets = (at_most - len(places)) // of_bucket
    bounds = [bucket * count // buckets for bucket in range(buckets + 1)]
    places.update(bounds[:-1])
    places.update(end - 1 for end in bounds[1:])
    for trace in traces:
        has_all = None not in trace
        for begin, end in pairwise(bounds):
            part = trace[begin:end]
            known: Sequence[float] = part if has_all else [value for value in part if value is not None]  # type: ignore[assignment]
            if known:
                places.add(begin + part.index(min(known)))
                places.add(begin + part.index(max(known)))
    return sorted(places)
