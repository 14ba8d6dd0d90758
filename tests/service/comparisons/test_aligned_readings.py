"""The points of two commits side by side: what a loop over all of them would find."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.comparisons.aligned_readings import align_readings, lay_out
from pullback_service.comparisons.columns import CommitReadings, DescribedSeries
from pullback_service.comparisons.judgement_inputs import JudgementInputs, MachinePair, SeriesStatements
from pullback_service.comparisons.judgements import NO_SERIES, Shape
from pullback_service.comparisons.judging import UploadedComparison
from pullback_service.comparisons.vectorized_judging import ReadingColumns
from pullback_service.ids import MachineId
from pullback_service.measured_code.code_identity import CodeIdentity

SHAPES = (
    Shape("fused", "tier", "time", "s", "smaller", exact=False),
    Shape("fused", "tier", "array_bytes", "B", "smaller", exact=True),
)
SERIES = range(10, 18)
"""Two cases on two machines, each with both shapes."""

MEASURED = {
    1: CodeIdentity("text", "files", "1.0"),
    2: CodeIdentity("text", "other files", "1.0"),
    3: CodeIdentity("other text", "files", "1.0"),
    4: CodeIdentity("text", "", "1.1"),
}
"""Of each what it says of two readings follows: another level, or equal code."""

point = st.tuples(
    st.sampled_from(SERIES), st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from([0, 1]),
    st.sampled_from([False, False, True]), st.sampled_from([0, *MEASURED]),
)  # fmt: skip
points = st.lists(point, max_size=12, unique_by=lambda each: each[0])
"""One reading a series, of a value, a method, whether its count is doubted, and of what it was measured."""


def numbers(found):
    series, values, methods, doubted, measured = zip(*found, strict=True) if found else ((),) * 5
    zeros = [0] * len(series)
    consistent = [not each for each in doubted]
    return CommitReadings(
        np.array(series, np.int64),
        ReadingColumns.of(values, *[zeros] * 6, methods, zeros, measured, zeros, consistent),
    )


def described(ids):
    ids = np.array(sorted(ids), np.int64)
    bits = ids - SERIES[0]
    return DescribedSeries(SHAPES, ids, (bits & 1).astype(np.intp), bits >> 2, bits >> 1 & 1)


def named(series_id):
    """Case, machine and shape of a series."""
    bits = series_id - SERIES[0]
    return bits >> 2, bits >> 1 & 1, bits & 1


def is_other_level(one, other):
    """3 has another text than all others, and 4 another harness."""
    return one != other and 0 not in (one, other) and bool({one, other} & {3, 4})


def is_unusual(older, newer, *, exact):
    differs = bool(older and newer) and (older[-1][2] != newer[-1][2] or is_other_level(older[-1][4], newer[-1][4]))
    return differs or (exact and any(each[3] for each in (*older, *newer)))


@given(points, points, st.booleans())
def test_every_series_that_either_commit_has_is_there_once(reference, candidate, two_machines):
    across = MachinePair(MachineId(0), MachineId(1)) if two_machines else None
    ids = {each[0] for each in (*reference, *candidate)}
    found = align_readings(described(ids), numbers(reference), numbers(candidate), MEASURED, across)

    def key(series_id):
        case, machine, shape = named(series_id)
        return (case, shape) if two_machines else (case, machine, shape)

    def end(points, machine):
        sides: dict[object, list[object]] = {}
        for each in points:
            if machine is None or named(each[0])[1] == machine:
                sides.setdefault(key(each[0]), []).append(each)
        return sides

    older = end(reference, None if across is None else across.reference)
    newer = end(candidate, None if across is None else across.candidate)
    seen = {}
    for at, place in enumerate(found.place.tolist()):
        series_id = sorted(ids)[place]
        seen[key(series_id)] = at
        before, now = older.get(key(series_id), []), newer.get(key(series_id), [])
        assert (bool(found.has_reference[at]), bool(found.has_candidate[at])) == (bool(before), bool(now))
        assert found.reference_series_id[at] == (before[-1][0] if before else NO_SERIES)
        assert series_id == (now or before)[-1][0]
        exact = SHAPES[named(series_id)[2]].exact
        unusual = is_unusual(before, now, exact=exact)
        assert bool(found.unusual[at]) == unusual
        equal = bool(before and now) and (before[-1][4], now[-1][4]) in {(1, 1), (2, 2), (3, 3), (1, 3), (3, 1)}
        assert bool(found.equal_code[at]) == (equal and across is None)
        if not unusual:
            assert not before or found.reference.value[at] == before[0][1]
            assert not now or found.candidate.value[at] == now[0][1]
    assert len(seen) == len(found.place)
    assert seen.keys() == older.keys() | newer.keys()


def test_what_only_uploads_that_compare_know_is_added():
    stated = SeriesStatements([UploadedComparison("slower")], 7, None, None, None, "smaller", exact=False)
    elsewhere = SeriesStatements([UploadedComparison("slower")], 8, 99, "tier", "s", "smaller", exact=False)
    inputs = JudgementInputs(
        {(0, 0, "fused", "time"): stated, (5, 0, "new", "time"): stated, (0, 9, "fused", "time"): elsewhere}
    )
    ids = {10, 11}
    both = numbers([(10, 1.0, 0, False, 0), (11, 1.0, 0, False, 0)])
    pairs = align_readings(described(ids), both, numbers([(10, 1.0, 0, False, 0)]), {})
    found = lay_out(described(ids), pairs, inputs)
    assert found.series_id.tolist() == [10, 11, NO_SERIES, 99]
    assert found.tie.tolist() == [10, 11, -7, 99]
    assert [found.shapes[place].variant for place in found.shape.tolist()] == ["fused", "fused", "new", "fused"]
    assert found.has_reference.tolist() == [True, True, False, False]
