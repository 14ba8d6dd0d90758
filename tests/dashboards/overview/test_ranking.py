"""Which case of a workload is the worst, and in which order workloads come."""

from dataclasses import replace

import pytest
from tests.service.readings.making import reading

from pullback_dashboards.history import Metric
from pullback_dashboards.overview.ranking import VariantResult, against_baseline, in_order, means, ranked

TIME = Metric("time", "s", exact=False)
BYTES = Metric("array_bytes", "B", exact=True)


def standing(case, variant, *, ratio=None, value=1.0, outcome=None, failure=None):
    measured = None if failure else reading(value, log_ratio=ratio, outcome=outcome)
    return VariantResult(case, variant, 1, measured, series_id=1, failure=failure)


def test_counts_have_their_ratio_to_the_baseline_of_the_same_commit():
    base, half, none = against_baseline(
        [standing("a", "unfused", value=8.0), standing("a", "fused", value=4.0), standing("a", "native", value=0.0)],
        BYTES,
        {},
    )
    assert base.reading.ratio.log_ratio is None
    assert half.reading.ratio.log_ratio == pytest.approx(-0.693, abs=1e-3)
    assert (none.reading.ratio.log_ratio, none.reading.outcome) == (None, "less")
    assert none.badness(BYTES) < half.badness(BYTES)


def test_a_count_at_an_older_commit_has_its_ratio_to_what_the_baseline_was_there():
    newer = replace(standing("a", "unfused", value=8.0), commit_id=2)
    counted = [newer, standing("a", "fused", value=4.0)]
    _, alone = against_baseline(counted, BYTES, {})
    assert (alone.reading.ratio.log_ratio, alone.reading.outcome) == (None, None)
    _, fused = against_baseline(counted, BYTES, {("a", 1): 4.0})
    assert (fused.reading.ratio.log_ratio, fused.reading.outcome) == (0.0, "equal")


def test_workloads_come_with_the_worst_tier_first_whatever_peers_say():
    found = [
        standing("a", "fused", ratio=-0.5),
        standing("a", "jax", ratio=3.0),
        standing("b", "fused", ratio=0.2),
        standing("c", "fused", failure="wrong"),
    ]
    workloads = ranked({name: [name] for name in "abc"}, found, TIME)
    assert [one.workload for one in in_order(workloads, "name")] == ["a", "b", "c"]
    assert [one.workload for one in in_order(workloads, "worst")] == ["c", "b", "a"]
    assert [one.workload for one in in_order(workloads, "best")] == ["a", "b", "c"]


def test_of_metrics_that_are_better_when_bigger_the_smallest_is_the_worst():
    more = Metric("throughput", "1/s", exact=False, bigger_is_better=True)
    found = [standing("a[n=1]", "fused", ratio=0.5), standing("a[n=2]", "fused", ratio=-0.5)]
    (one,) = ranked({"a": ["a[n=1]", "a[n=2]"]}, found, more)
    assert (one.extremes["fused"].worst.case, one.extremes["fused"].best.case) == ("a[n=2]", "a[n=1]")


def mean_of(*counts, metric=BYTES):
    """The mean of fused, of cases with these counts of unfused and fused; what failed has no count."""
    found = []
    for case, (base, count) in enumerate(counts):
        failure = "wrong" if count is None else None
        found += [
            standing(f"{case}", "unfused", value=base),
            standing(f"{case}", "fused", value=count, failure=failure),
        ]
    (_, fused) = means(against_baseline(found, metric, {}), metric)
    return fused


def test_a_mean_beside_zeros_counts_both_kinds_of_them_and_is_better_only_where_nothing_is_worse():
    mixed = mean_of((100, 0), (0, 100), (100, 400))
    assert mixed.words == (
        "none in 1 of 3 cases, and some, where unfused has none, in 1 of 3 cases, "
        "and 4.0× as much as unfused over the one with a ratio"
    )
    assert (mixed.value, mixed.tone, mixed.depth, mixed.cases) == ("0 in 1 of 3", "unsure", 0, 3)
    better = mean_of((100, 0), (100, 50), (100, 50), (7, 7), (0, 0))
    assert better.words == "none in 1 of 5 cases, and 37 % less than unfused over the 3 with a ratio"
    assert (better.tone, better.depth) == ("better", 5)
    worse = mean_of((0, 3), (100, 400), (5, None))
    assert worse.words.startswith("some, where unfused has none, in 1 of 2 cases")
    assert (worse.value, worse.tone) == ("some in 1 of 2", "worse")


def test_a_mean_does_not_say_of_less_than_zero_that_it_is_none_at_all():
    less = mean_of((3, -5), (3, 0), (4, 2))
    assert less.words == (
        "none in 1 of 3 cases, and less than unfused in 1 of 3 cases, and 50 % less than unfused over the one with a ratio"
    )
    more = mean_of((-5, 3))
    assert (more.value, more.words, more.tone) == ("more in 1 of 1", "more than unfused in 1 of 1 case", "worse")


def test_none_at_all_is_worse_where_more_is_better():
    hits = Metric("hits", "1", exact=True, bigger_is_better=True)
    assert mean_of((100, 0), metric=hits).tone == "worse"
    assert mean_of((0, 100), metric=hits).tone == "better"


def test_a_workload_without_a_number_is_left_out():
    assert ranked({"a": ["a"], "b": ["b"]}, [standing("b", "fused", ratio=0.0)], TIME)[0].workload == "b"
