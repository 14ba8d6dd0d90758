"""Fewer marks than there are points, for a plot that looks the same. Pure.

Points in order are cut into buckets of equal counts, and of each bucket are kept the first, the last, and for every trace
the lowest and the highest: M4 (Jugel, Jerzak, Hackenbroich, Markl: VLDB 2014, M4: a visualization-oriented time series
data aggregation), whose line differs from the full one by nothing that is wider than a bucket. LTTB was not chosen: it
keeps one point of a bucket, and of a spike up next to a spike down it drops one.
"""

from collections.abc import Collection, Sequence

FEWEST_MARKS = 16


def thin(traces: Sequence[Sequence[float | None]], at_most: int, *, keep: Collection[int] = ()) -> list[int]:
    """Places of the points to show, in order: at most `at_most`, all of them where they are as few.

    Each trace has a value, or None, for every point. The first and the last point, and those of every trace's lowest
    and highest value, stay. So do the places to `keep` (both sides of a change, say), of which there may be up to half
    as many as marks.
    """
    count = len(traces[0])
    if any(len(trace) != count for trace in traces):
        raise ValueError("Traces of different lengths have no common points.")
    kept = {place for place in keep if 0 <= place < count}
    of_bucket = 2 + 2 * len(traces)
    if at_most < FEWEST_MARKS or len(kept) > at_most // 2 or of_bucket > at_most // 2:
        raise ValueError(
            f"{at_most} marks are too few for {len(kept)} that must be kept: allow {max(FEWEST_MARKS, 2 * len(kept))} or more."
        )
    if count <= at_most:
        return list(range(count))
    buckets = (at_most - len(kept)) // of_bucket
    for bucket in range(buckets):
        begin, end = bucket * count // buckets, (bucket + 1) * count // buckets
        kept |= {begin, end - 1}
        for trace in traces:
            known = [value for value in trace[begin:end] if value is not None]
            if known:
                kept |= {trace.index(min(known), begin, end), trace.index(max(known), begin, end)}
    return sorted(kept)
