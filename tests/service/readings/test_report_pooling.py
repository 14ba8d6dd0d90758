"""Several reports at one commit become one value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.ratio import Ratio
from pullback_service.readings.report_pooling import (
    MeasuredPoint,
    pool,
    spread_of,
    weighted_spread,
)


def rolled_up(values):
    """A point of which only this is left of its process values."""
    spread = spread_of(values)
    return MeasuredPoint(spread.median, None, spread.n, spread.low, spread.q25, spread.q75, spread.high)


def test_process_values_of_reports_that_scatter_alike_are_pooled():
    points = [MeasuredPoint(2.0, [1.0, 2.0, 3.0]), MeasuredPoint(9.0, [8.0, 9.0])]
    assert pool(points).value == 3.0
    assert pool(points).spread.n == 5


def test_a_report_that_scatters_widely_counts_for_little():
    quiet = MeasuredPoint(1.0, [0.99, 1.0, 1.0, 1.01, 1.02])
    busy = MeasuredPoint(1.6, [1.1, 1.4, 1.6, 1.9, 2.3], quality="busy")
    assert pool([quiet, busy]).value == pytest.approx(1.0, abs=0.02)
    assert pool([busy, quiet]).value == pool([quiet, busy]).value
    assert pool([busy]).value == 1.6
    assert pool([quiet, busy]).spread.n == 10


def test_a_reading_is_busy_where_no_report_is_clean():
    bad = MeasuredPoint(9.0, [9.0], quality="busy")
    assert pool([bad]).quality == "busy"
    assert pool([MeasuredPoint(1.0, [1.0]), bad]).quality == "clean"


def test_a_reading_is_consistent_where_every_process_of_every_report_counted_the_same():
    assert pool([MeasuredPoint(4.0), MeasuredPoint(4.0, [4.0, 4.0])]).consistent
    assert not pool([MeasuredPoint(4.0), MeasuredPoint(5.0)]).consistent
    assert not pool([MeasuredPoint(4.0, [4.0, 5.0])]).consistent
    assert pool([MeasuredPoint(4.0), MeasuredPoint(5.0)]).value == 5.0


def test_reports_of_a_count_that_differs_from_call_to_call_are_consistent_where_they_meet():
    points = [MeasuredPoint(value, process_low=low, process_high=high) for value, low, high in ((5, 3, 6), (6, 5, 9))]
    pooled = pool(points)
    assert (pooled.value, pooled.process_low, pooled.process_high) == (6, 3, 9)
    assert pooled.consistent
    assert pooled.spread is None
    assert pool([points[0], MeasuredPoint(4.0)]).consistent
    assert not pool([points[0], MeasuredPoint(7.0)]).consistent
    assert not pool([points[0], MeasuredPoint(4.0, [4.0, 5.0])]).consistent
    assert pool([points[0]._replace(quality="busy"), points[1]]).process_low == 5


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_equal_weights_weigh_nothing(values):
    plain, weighted = spread_of(values), weighted_spread(values, [0.25] * len(values))
    assert [weighted.low, weighted.q25, weighted.median, weighted.q75, weighted.high] == pytest.approx(
        [plain.low, plain.q25, plain.median, plain.q75, plain.high], abs=1e-6
    )


def test_an_exact_metric_is_what_the_newest_report_counted():
    points = [MeasuredPoint(100.0), MeasuredPoint(200.0)]
    assert pool(points).value == 200.0
    assert pool(points).spread is None


def test_the_ratio_with_the_most_groups_speaks_and_the_newest_among_equals():
    few, many, newer = (MeasuredPoint(1, ratio=Ratio(ratio, n=n)) for ratio, n in ((0.1, 6), (0.2, 20), (0.3, 20)))
    assert pool([few, many]).ratio.log_ratio == 0.2
    assert pool([many, newer, few]).ratio.log_ratio == 0.3
    busy = MeasuredPoint(4, ratio=Ratio(0.4, n=40), quality="busy")
    assert pool([busy, few]).ratio.log_ratio == 0.1
    assert pool([MeasuredPoint(5, ratio=Ratio(0.5, n=6), quality="busy"), busy]).ratio.log_ratio == 0.4


def test_a_busy_report_of_too_few_processes_is_left_out_where_there_are_others():
    clean, busy = MeasuredPoint(1.0, [1.0]), MeasuredPoint(9.0, [9.0], quality="busy")
    assert pool([clean, busy]).value == 1.0
    assert pool([busy, busy]).value == 9.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_the_spread_is_numpys(values):
    spread = spread_of(values)
    expected = np.percentile(values, [0, 25, 50, 75, 100])
    assert [spread.low, spread.q25, spread.median, spread.q75, spread.high] == pytest.approx(expected.tolist())
    assert spread.n == len(values)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_what_was_rolled_up_says_the_same_alone_and_nearly_the_same_in_company(values, others):
    spread = spread_of(values)
    rolled = rolled_up(values)
    assert pool([rolled]).spread == spread
    assert pool([rolled]).value == spread.median
    if others:
        company = MeasuredPoint(0.0, others)
        exact, pooled = spread_of([*values, *others]), pool([rolled, company]).spread
        digits = 1e-12 * max(map(abs, (*values, *others)))  # values between quartiles are interpolated
        assert (pooled.n, pooled.low, pooled.high) == pytest.approx((exact.n, exact.low, exact.high), abs=digits)
        assert pooled.low <= pool([rolled, company]).value <= pooled.high


def test_a_rolled_up_point_keeps_its_weight_in_company():
    rolled = rolled_up([1.0, 2.0, 3.0])
    assert pool([rolled, MeasuredPoint(9.0, [8.0, 9.0])]).value == 3.0
