"""Several reports at one commit become one value."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.series.pooling import pooled_spread, pooled_value, speaker, spread_of


@dataclass
class Measured:
    value: float
    process_values: list[float] | None = None
    quality: str = "clean"
    n: int | None = None
    process_count: int | None = None
    process_low: float | None = None
    process_q25: float | None = None
    process_q75: float | None = None
    process_high: float | None = None


def rolled_up(values):
    """A point of which only this is left of its process values."""
    spread = spread_of(values)
    return Measured(spread.median, None, "clean", None, spread.n, spread.low, spread.q25, spread.q75, spread.high)


def test_process_values_of_clean_reports_are_pooled():
    points = [Measured(2.0, [1.0, 2.0, 3.0]), Measured(9.0, [8.0, 9.0])]
    assert pooled_value(points) == 3.0
    assert pooled_spread(points).n == 5


def test_contaminated_reports_count_only_when_there_is_nothing_else():
    bad = Measured(9.0, [9.0], quality="contaminated")
    assert pooled_value([Measured(1.0, [1.0]), bad]) == 1.0
    assert pooled_value([bad]) == 9.0


def test_an_exact_metric_is_what_the_newest_report_counted():
    points = [Measured(100.0), Measured(200.0)]
    assert pooled_value(points) == 200.0
    assert pooled_spread(points) is None


def test_the_ratio_with_the_most_groups_speaks_and_the_newest_among_equals():
    few, many, newer = Measured(1, n=6), Measured(2, n=20), Measured(3, n=20)
    assert speaker([few, many]) is many
    assert speaker([many, newer, few]) is newer
    assert speaker([Measured(4, n=40, quality="contaminated"), few]) is few


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
    assert pooled_spread([rolled]) == spread
    assert pooled_value([rolled]) == spread.median
    if others:
        company = Measured(0.0, others)
        exact, pooled = spread_of([*values, *others]), pooled_spread([rolled, company])
        assert (pooled.n, pooled.low, pooled.high) == pytest.approx((exact.n, exact.low, exact.high))
        assert pooled.low <= pooled_value([rolled, company]) <= pooled.high


def test_a_rolled_up_point_keeps_its_weight_in_company():
    rolled = rolled_up([1.0, 2.0, 3.0])
    assert pooled_value([rolled, Measured(9.0, [8.0, 9.0])]) == 3.0
