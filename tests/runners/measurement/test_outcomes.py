import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_runners.measurement.outcomes import Margins, exact_log_ratio, exact_outcome, margins, noisy_outcome
from pullback_runners.measurement.statistics import RatioEstimate

OPPOSITE = {"faster": "slower", "slower": "faster", "same": "same", "ambiguous": "ambiguous"}


@pytest.mark.parametrize(
    ("low", "middle", "high", "expected"),
    [
        (-0.30, -0.20, -0.10, "faster"),
        (0.10, 0.20, 0.30, "slower"),
        (-0.01, 0.0, 0.01, "ambiguous"),  # a provisional floor shows no sameness
        (0.005, 0.015, 0.025, "ambiguous"),  # excludes 0, but may be more than the margin or less
        (-0.05, 0.0, 0.05, "ambiguous"),
        (-0.001, 0.1, 0.2, "ambiguous"),
    ],
)
def test_the_rule(low, middle, high, expected):
    assert noisy_outcome(RatioEstimate(middle, low, high, 20), margins(), may_say_same=True) == expected


def test_a_quick_run_does_not_say_same():
    assert noisy_outcome(RatioEstimate(0, -0.01, 0.01, 6), margins(), may_say_same=False) == "ambiguous"


@given(st.floats(-1, 1), st.floats(0, 1), st.booleans())
def test_the_rule_treats_both_directions_alike(middle, reach, may_say_same):
    there = noisy_outcome(
        RatioEstimate(middle, middle - reach, middle + reach, 9), margins(), may_say_same=may_say_same
    )
    back = noisy_outcome(
        RatioEstimate(-middle, -middle - reach, -middle + reach, 9), margins(), may_say_same=may_say_same
    )
    assert back == OPPOSITE[there]


def test_the_margins_are_the_machines_floor_but_never_below_what_is_worth_saying():
    assert margins() == Margins(claim=0.02, same=0.02, is_provisional=True)
    assert margins(0.001) == Margins(claim=0.005, same=0.01, is_provisional=False)
    assert margins(0.007) == Margins(claim=0.007, same=0.01, is_provisional=False)
    assert margins(0.07) == Margins(claim=0.07, same=0.07, is_provisional=False)


def test_a_busy_machine_has_a_larger_provisional_floor_and_moves_none_that_is_known():
    few, more, many = (margins(busy_groups=groups).claim for groups in (2, 11, 100))
    assert (few, more, many) == (pytest.approx(0.099, abs=5e-4), pytest.approx(0.042, abs=5e-4), 0.02)
    assert margins(0.007, busy_groups=2) == margins(0.007)


@pytest.mark.parametrize(
    ("low", "middle", "high", "expected"),
    [
        (0.007, 0.0099, 0.013, "slower"),  # a true difference of 1 %, measured as a little less
        (0.001, 0.004, 0.012, "ambiguous"),
        (-0.002, 0.004, 0.009, "same"),
        (0.002, 0.006, 0.009, "same"),  # a difference, but one below the margin
    ],
)
def test_the_rule_where_the_floor_is_low(low, middle, high, expected):
    assert noisy_outcome(RatioEstimate(middle, low, high, 20), margins(0.004), may_say_same=True) == expected


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_counts_compare_by_difference(ours, theirs):
    assert exact_outcome(ours, theirs) == {True: "less", False: "more"}.get(ours < theirs, "") or ours == theirs
    ratio = exact_log_ratio(ours, theirs)
    assert (ratio is None) == (ours == 0 or theirs == 0)


def test_nothing_against_nothing_is_equal_and_has_no_ratio():
    assert exact_outcome(0, 0) == "equal"
    assert exact_log_ratio(0, 0) is None
    assert exact_outcome(0, 8) == "less"
    assert exact_log_ratio(0, 8) is None
    assert exact_log_ratio(4, 8) == pytest.approx(-math.log(2))
