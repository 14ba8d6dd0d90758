import math

import pytest
from tests.service.readings.making import reading

from pullback_dashboards.history import Failure, baseline_in_words, in_reading_order, with_exact_ratios


def test_variants_come_baseline_first_then_tiers_then_peers_by_name():
    order = in_reading_order({"torch", "native", "autograd", "fused", "unfused", "stateful"})
    assert order == ("unfused", "fused", "stateful", "native", "autograd", "torch")


def test_exact_metrics_get_their_ratio_from_the_same_commit(history):
    fused = history.find("dense[n=100,f4,cpu]", "fused", "array_bytes").results
    assert fused[0].ratio.log_ratio == math.log(1024 / 4096)
    assert fused[0].outcome == "less"
    assert isinstance(fused[1], Failure)


def test_a_zero_has_an_outcome_but_no_ratio(build):
    lines = (
        build.line("unfused", [reading(0.0), reading(0.0), reading(8.0)], build.bytes),
        build.line("fused", [reading(0.0), reading(8.0), reading(0.0)], build.bytes),
    )
    readings = build.history(*lines).find("dense[n=100,f4,cpu]", "fused", "array_bytes").results
    assert [r.outcome for r in readings] == ["equal", "more", "less"]
    assert [r.ratio.log_ratio for r in readings] == [None, None, None]


def test_a_count_is_not_compared_where_the_baseline_was_not_counted(build):
    lines = (
        build.line("unfused", [None, Failure("no such tier"), reading(8.0)], build.bytes),
        build.line("fused", [reading(4.0), reading(4.0), None], build.bytes),
    )
    first, second, third = build.history(*lines).find("dense[n=100,f4,cpu]", "fused", "array_bytes").results
    assert (first.outcome, second.outcome, third) == (None, None, None)


def test_a_count_that_is_not_alike_in_every_call_claims_nothing_against_the_baseline(build):
    lines = (
        build.line("unfused", [reading(10.0)], build.bytes),
        build.line("fused", [reading(5.0, outcome="ambiguous")], build.bytes),
    )
    (counted,) = with_exact_ratios(build.history(*lines)).find("dense[n=100,f4,cpu]", "fused", "array_bytes").results
    assert (counted.outcome, counted.ratio.log_ratio) == ("ambiguous", pytest.approx(-0.693, abs=1e-3))


def test_counts_are_held_against_the_baseline_that_their_case_names(build):
    named = reading(5.0, log_ratio=-0.1, outcome="less", baseline="by-hand")
    lines = (build.line("by-hand", [reading(8.0)], build.bytes), build.line("jax", [named], build.bytes))
    by_hand, jax = with_exact_ratios(build.history(*lines)).lines
    assert (by_hand.is_baseline, jax.is_baseline) == (True, False)
    assert (by_hand.results[0].ratio.log_ratio, by_hand.results[0].against) == (None, "unfused")
    assert (jax.results[0].ratio.log_ratio, jax.results[0].against) == (pytest.approx(-0.470, abs=1e-3), "by-hand")
    assert baseline_in_words(line.baseline for line in (by_hand, jax)) == "by-hand"
    assert baseline_in_words(["by-hand", "unfused"]) == "the baseline"
