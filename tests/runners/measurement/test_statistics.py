import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pullback_runners.measurement.outcomes import margins, noisy_outcome
from pullback_runners.measurement.statistics import (
    FEWEST_KNOWN_BY_THEMSELVES,
    interquartile_mean,
    noise_floor,
    pair_log_ratio,
    ratio_estimate,
)

times = st.floats(1e-9, 10.0)
pairs_of_slices = st.lists(st.tuples(times, times), min_size=1, max_size=60)
log_ratios = st.lists(st.floats(-3, 3), min_size=2, max_size=40)
log_ratios_of_groups_enough = st.lists(st.floats(-3, 3), min_size=FEWEST_KNOWN_BY_THEMSELVES, max_size=40)


@given(pairs_of_slices)
def test_turning_a_pair_round_turns_its_sign(pairs):
    variant, baseline = zip(*pairs, strict=True)
    there, back = pair_log_ratio(variant, baseline), pair_log_ratio(baseline, variant)
    assert there == pytest.approx(-back, abs=1e-9)


@given(pairs_of_slices, st.floats(0.01, 100))
def test_a_slower_clock_changes_no_ratio(pairs, factor):
    variant, baseline = zip(*pairs, strict=True)
    scaled = pair_log_ratio([v * factor for v in variant], [b * factor for b in baseline])
    assert scaled == pytest.approx(pair_log_ratio(variant, baseline), abs=1e-9)


@given(log_ratios)
def test_the_estimate_lies_in_its_interval_and_among_its_values(values):
    estimate = ratio_estimate(values)
    assert estimate.low <= estimate.log_ratio + 1e-12
    assert estimate.log_ratio <= estimate.high + 1e-12
    assert min(values) - 1e-12 <= estimate.log_ratio <= max(values) + 1e-12
    assert estimate.n == len(values)


@given(log_ratios_of_groups_enough)
def test_the_interval_is_the_one_that_scipy_gives(values):
    estimate = ratio_estimate(values, 0.95)
    low, high = stats.mstats.trimmed_mean_ci(np.array(values), limits=(0.2, 0.2), alpha=0.05)
    expected = (stats.trim_mean(values, 0.2), low, high)
    assert (estimate.log_ratio, estimate.low, estimate.high) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25), rel=1e-12, abs=1e-12)


@given(log_ratios, st.floats(-1, 1))
def test_a_shift_of_all_pairs_shifts_the_interval(values, shift):
    before, after = ratio_estimate(values), ratio_estimate([value + shift for value in values])
    # Two values far apart make a wide interval (their t factor is near 13), and rounding grows with its width.
    rounding = 1e-6 * max(1.0, before.high - before.low)
    assert after.low == pytest.approx(before.low + shift, abs=rounding)
    assert after.high == pytest.approx(before.high + shift, abs=rounding)


def test_the_interval_is_the_winsorized_one_by_its_textbook_formula():
    values = np.random.default_rng(3).normal(0.1, 0.02, 20)
    ordered = np.sort(values)
    cut = 4
    winsorized = np.clip(values, ordered[cut], ordered[-cut - 1])
    error = winsorized.std(ddof=1) / (0.6 * math.sqrt(20))
    reach = stats.t.ppf(0.975, 20 - 2 * cut - 1) * error
    estimate = ratio_estimate(values)
    assert estimate.log_ratio == pytest.approx(ordered[cut:-cut].mean())
    assert estimate.low == pytest.approx(estimate.log_ratio - reach)
    assert estimate.high == pytest.approx(estimate.log_ratio + reach)


def test_a_quarter_of_preempted_slices_moves_nothing():
    quiet = [1e-3] * 75 + [1e-3] * 25
    preempted = [1e-3] * 75 + [9e-3] * 25
    assert pair_log_ratio(preempted, quiet) == pytest.approx(0.0, abs=1e-12)
    assert interquartile_mean(preempted) == pytest.approx(1e-3)


def test_pairs_and_intervals_refuse_what_they_cannot_be_made_of():
    with pytest.raises(ValueError, match="2 and 1"):
        pair_log_ratio([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="0 and 0"):
        pair_log_ratio([], [])
    with pytest.raises(ValueError, match="two pairs"):
        ratio_estimate([0.1])


def measured(rng, effect, groups, slices=100):
    """Log ratios of a simulated run, as noisy as a shared machine: common drift, layout by process, lonely preemptions."""
    found = []
    for _ in range(groups):
        drift = np.exp(rng.normal(0, 0.2) + np.cumsum(rng.normal(0, 0.01, slices)))
        variant, baseline = (
            1e-4 * drift * np.exp(layout + rng.normal(0, 0.03, slices)) * np.where(rng.random(slices) < 0.05, 3, 1)
            for layout in rng.normal(0, 0.008, 2)
        )
        found.append(pair_log_ratio(list(variant * math.exp(effect)), list(baseline)))
    return found


def outcomes_of(effect, groups, runs=60, *, may_say_same=True):
    """On a machine whose floor is known to be 2 %; a quick run has too few groups to know it."""
    rng = np.random.default_rng(20)
    known = margins(0.02 if may_say_same else None)
    return [
        noisy_outcome(ratio_estimate(measured(rng, effect, groups)), known, may_say_same=may_say_same)
        for _ in range(runs)
    ]


def test_three_per_cent_are_found_in_twenty_groups():
    assert outcomes_of(0.03, 20).count("slower") >= 57
    assert outcomes_of(-0.03, 20).count("faster") >= 57


def test_no_difference_is_not_called_one():
    found = outcomes_of(0.0, 20)
    assert found.count("same") >= 54
    assert found.count("faster") + found.count("slower") <= 1


def test_a_quick_run_finds_a_factor_and_never_says_same():
    assert set(outcomes_of(-0.5, 6, may_say_same=False)) == {"faster"}
    nothing = outcomes_of(0.0, 6, may_say_same=False)
    assert "same" not in nothing
    assert nothing.count("ambiguous") >= 57


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(11)
    covered = sum(
        estimate.low <= 0.02 <= estimate.high
        for estimate in (ratio_estimate(rng.standard_t(3, 20) * 0.01 + 0.02) for _ in range(400))
    )
    assert covered >= 0.93 * 400


def test_few_groups_that_agree_by_chance_make_no_narrow_interval():
    agreeing = ratio_estimate([0.05, 0.0501])
    assert agreeing.low < 0 < agreeing.log_ratio
    assert ratio_estimate([0.05, 0.0501] * 3).low > 0


NOISES = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "heavy tails": lambda rng, size: rng.standard_t(3, size) / math.sqrt(3),
    "some sessions noisier": lambda rng, size: rng.standard_normal(size) * rng.lognormal(-0.1, 0.4),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("groups", range(2, FEWEST_KNOWN_BY_THEMSELVES))
def test_few_groups_on_a_busy_machine_find_a_third_and_no_difference_of_equal_programs(groups, noise):
    """Of groups that scatter by 4 %, as beside a dozen busy processes on two CPUs; a run has a row for each case and variant."""
    rng, sessions, floor = np.random.default_rng(33), 1000, margins(busy_groups=groups)
    drawn = [0.04 * NOISES[noise](rng, groups) for _ in range(sessions)]
    estimates = [ratio_estimate(each) for each in drawn]
    covered = sum(each.low <= 0 <= each.high for each in estimates)
    different = sum(noisy_outcome(each, floor, may_say_same=False) != "ambiguous" for each in estimates)
    third = [noisy_outcome(ratio_estimate(each + math.log(1.3)), floor, may_say_same=False) for each in drawn]
    assert covered >= 0.95 * sessions
    assert different <= 0.01 * sessions
    assert third.count("slower") >= 0.99 * sessions


def test_against_twins_of_the_baseline_it_is_the_mean_of_both_ratios():
    variant, baseline, twin = [2.0, 4.0, 8.0], [1.0, 2.0, 4.0], [4.0, 8.0, 16.0]
    assert pair_log_ratio(variant, baseline, twin) == pytest.approx(0.0)
    assert pair_log_ratio(variant, baseline) == pytest.approx(math.log(2))


def test_the_floor_is_what_twins_reach_in_so_many_groups():
    rng = np.random.default_rng(5)
    twins = list(rng.normal(0, 0.02, 40))
    floor = noise_floor(twins, 20)
    assert floor == noise_floor(twins, 20)
    # 95 % of means of 20 normal values lie within 1.96 standard errors, those of trimmed means a little further.
    assert floor == pytest.approx(1.96 * math.sqrt(3 / 4) * np.std(twins) / math.sqrt(20), rel=0.35)
    assert noise_floor(twins, 40) < floor
    assert noise_floor([0.01] * 40, 20) <= 0.01


def test_a_third_program_alike_comes_further_from_its_twins_than_the_floor_once_in_twenty():
    rng = np.random.default_rng(13)
    beyond = 0
    for _ in range(200):
        third, baseline, twin = rng.standard_t(4, (3, 20)) * 0.01
        estimate = ratio_estimate(third - (baseline + twin) / 2)
        beyond += abs(estimate.log_ratio) > noise_floor(baseline - twin, 20)
    # The floor is itself made of twenty numbers, so it is a little low as often as it is high.
    assert 4 <= beyond <= 24


def test_fewer_than_twelve_twins_make_no_floor():
    assert noise_floor([0.01] * 11, 20) is None
    assert noise_floor([0.01] * 12, 20) is not None


def test_skewed_noise_makes_no_difference_between_three_processes_of_one_program():
    """The ratio to the mean slice of twins is biased under noise that only ever adds; the mean of ratios is not."""
    rng = np.random.default_rng(8)
    processes = 1e-4 * (1 + 0.05 * rng.exponential(size=(400, 3, 100)))
    found = [pair_log_ratio(*group.tolist()) for group in processes]
    assert abs(np.mean(found)) < 3 * np.std(found) / math.sqrt(len(found))
    mean_slice = [pair_log_ratio(a.tolist(), np.sqrt(b * c).tolist()) for a, b, c in processes]
    assert np.mean(mean_slice) < -0.001
