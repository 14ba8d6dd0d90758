"""The two doors, on series whose changes are known."""

import json
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pullback_service.regression import Watcher, find_changes

QUICK = settings(max_examples=12, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def noise(seed, n=150, spread=0.01):
    return 100 * np.exp(spread * np.random.default_rng(seed).normal(size=n))


def stepped(values, factor, begin, end=None):
    changed = values.copy()
    changed[begin:end] *= factor
    return changed


def lived(values, **options):
    watcher = Watcher(**options)
    return [(i, change) for i, value in enumerate(values) for change in watcher.observe(value)], watcher


@QUICK
@given(SEEDS, st.floats(1e-9, 1e9), st.floats(0.9, 1.2))
def test_the_unit_of_a_series_changes_nothing(seed, unit, factor):
    values = stepped(noise(seed, 60), factor, 40)
    there, here = find_changes(values * unit), find_changes(values)
    assert [(c.first, c.last, c.kind) for c in there] == [(c.first, c.last, c.kind) for c in here]
    assert [c.size for c in there] == pytest.approx([c.size for c in here], rel=1e-6, abs=1e-9)


@QUICK
@given(st.floats(1e-12, 1e12), st.integers(0, 200))
def test_a_constant_series_does_not_change(value, n):
    assert find_changes([value] * n) == []
    assert find_changes([value] * n, exact=True) == []
    assert lived([value] * min(n, 40))[0] == []


@QUICK
@given(SEEDS, st.integers(20, 40), st.sampled_from([0.8, 1.25]))
def test_a_large_step_is_found_at_its_observation_whichever_way_it_goes(seed, place, factor):
    values = stepped(noise(seed, 60), factor, place)
    change, *others = sorted(find_changes(values), key=lambda change: -abs(change.size))
    assert all(
        abs(other.size) < 0.03 for other in others
    )  # noise may be taken for a step once in a thousand observations
    assert (change.first, change.last, change.at, change.kind) == (place, place, place, "step")
    assert change.low < math.log(factor) + 0.02
    assert change.high > math.log(factor) - 0.02
    assert change.probability > 0.99


@QUICK
@given(SEEDS, st.integers(30, 45))
def test_a_large_step_is_told_once_and_within_four_observations(seed, place):
    told, watcher = lived(stepped(noise(seed, 60), 1.2, place))
    assert [(change.kind, change.at) for _, change in told] == [("step", place)]
    assert place < told[0][0] < place + 4
    assert watcher.changes == [change for _, change in told]


@QUICK
@given(SEEDS, st.integers(10, 59))
def test_what_was_told_of_a_series_depends_on_nothing_that_came_later(seed, n):
    values = stepped(noise(seed, 60), 1.1, 30)
    whole = [(i, change) for i, change in lived(values)[0] if i < n]
    assert whole == lived(values[:n])[0]


@QUICK
@given(SEEDS, st.integers(0, 60), st.booleans())
def test_a_watcher_that_was_stored_goes_on_as_if_it_had_not_been(seed, n, exact):
    values = stepped(noise(seed, 60), 1.1, 30)
    values = np.round(values) if exact else values
    watcher = Watcher(exact=exact)
    for value in values[:n].tolist():
        watcher.observe(value, commit="one")
    again = Watcher.restored(json.loads(json.dumps(watcher.state())))
    for i, value in enumerate(values[n:].tolist()):
        assert again.observe(value, commit=f"later {i}") == watcher.observe(value, commit=f"later {i}")
    assert again.state() == watcher.state()
    assert again.resolution == watcher.resolution


def without_marks(watcher):
    state = watcher.state()
    del state["series"]["marks"]
    return state


@pytest.mark.long
@QUICK
@given(SEEDS, st.integers(0, 300), st.integers(0, 300))
def test_a_watcher_goes_back_to_before_an_observation_and_on_as_if_it_had_not_taken_it(seed, n, kept):
    n, kept = max(n, kept), min(n, kept)
    values = [(value, value * 0.99, value * 1.01) for value in stepped(noise(seed, 300), 1.05, 150, 200).tolist()]
    whole, watcher = Watcher(), Watcher()
    for value, low, high in values[:n]:
        watcher.observe(value, low=low, high=high)
    back = Watcher.restored(json.loads(json.dumps(watcher.state()))).rewound(kept, values[:kept])
    if back is None:
        assert kept < max(16, 2 * (n - kept))
        return
    assert kept / 2 - 16 <= back.count <= kept
    for value, low, high in values[: back.count]:
        whole.observe(value, low=low, high=high)
    assert without_marks(back) == without_marks(whole)


def test_a_watcher_of_counts_of_logarithms_or_of_named_commits_does_not_go_back():
    for watcher, values in ((Watcher(exact=True), [1.0] * 40), (Watcher(), [-1.0, 1.0] * 20)):
        for value in values:
            watcher.observe(value)
        assert watcher.rewound(30, [(value, None, None) for value in values[:30]]) is None
    named = Watcher()
    for number in range(40):
        named.observe(1.0, commit=number)
    assert named.rewound(30, [(1.0, None, None)] * 30) is None


def test_a_state_of_another_detector_is_refused():
    state = Watcher().state() | {"version": 0}
    with pytest.raises(ValueError, match=r"^The state is of levels 0, this is levels \d+: observe the series again\.$"):
        Watcher.restored(state)


def test_the_state_of_a_long_series_is_no_larger_than_that_of_a_short_one():
    short, long = lived(noise(1, 300))[1], lived(noise(1, 900))[1]
    assert len(json.dumps(long.state())) < 1.3 * len(json.dumps(short.state()))


def test_a_level_that_is_left_and_reached_again_is_one_event_with_an_end():
    values = stepped(noise(3), 1.2, 100, 110)
    for changes in (find_changes(values), [change for _, change in lived(values)[0]]):
        assert [(change.kind, change.at, change.since) for change in changes] == [
            ("step", 100, None),
            ("return", 110, 100),
        ]


@pytest.mark.parametrize(("commits", "behind"), [(4, 3), (6, 3), (6, 6), (12, 3)])
def test_both_ends_of_a_short_level_are_found_however_near_the_end_of_the_series(commits, behind):
    changes = find_changes(stepped(noise(3, 20 + commits + behind), 1.3, 20, 20 + commits))
    assert [(change.kind, change.at) for change in changes] == [("step", 20), ("return", 20 + commits)]


def test_two_observations_off_the_level_are_a_spike():
    changes = find_changes(stepped(noise(3), 1.3, 100, 102))
    assert [(change.kind, change.first, change.last) for change in changes] == [("spike", 100, 101)]


def test_one_observation_off_the_level_is_nothing():
    values = stepped(noise(3), 2.0, 100, 101)
    assert find_changes(values) == []
    assert lived(values)[0] == []


def test_a_drift_is_told_once():
    values = noise(5) * np.exp(np.clip(np.arange(150) - 50, 0, 50) * 0.002)
    (change,) = find_changes(values)
    assert change.kind == "drift"
    assert change.size == pytest.approx(0.1, abs=0.01)
    assert abs(change.first - 50) < 8
    assert abs(change.last - 100) < 8
    told, watcher = lived(values)
    assert len(told) == 1
    assert [change.kind for change in watcher.changes] == ["drift"]


@pytest.mark.parametrize("size", [0.1, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("before", [20, 60])
def test_a_drift_that_is_steep_against_the_noise_is_told_while_it_lasts(before, size):
    values = noise(7, before + 40) * np.exp(np.clip(np.arange(before + 40) - before, 0, 30) / 30 * size)
    (change,) = find_changes(values)
    assert change.kind == "drift"
    assert change.size == pytest.approx(size, rel=0.15)
    ((place, _),), watcher = lived(values)
    assert before + 1 <= place < before + 30
    assert [change.kind for change in watcher.changes] == ["drift"]


@pytest.mark.parametrize("reports", [8, 10, 30])
def test_a_slope_between_the_reports_of_one_commit_is_no_drift(reports):
    rise = np.concatenate([np.zeros(20), np.linspace(0.02, 0.5, reports), np.full(20, 0.5)])
    commits = [*range(20), *([20] * reports), *range(21, 41)]
    values = noise(2, len(rise)) * np.exp(rise)
    assert "drift" not in {change.kind for change in find_changes(values, commits=commits)}
    watcher = Watcher()
    told = [
        change
        for value, commit in zip(values, commits, strict=True)
        for change in watcher.observe(value, commit=commit)
    ]
    assert "drift" not in {change.kind for change in told}


@pytest.mark.parametrize("seed", range(4))
def test_a_slope_down_that_goes_on_is_no_return_yet(seed):
    rise = 0.4 * np.concatenate([np.zeros(10), np.linspace(0.05, 1, 20), np.linspace(0.95, 0, 20)])
    told, _ = lived(noise(seed, 50) * np.exp(rise))
    assert [place for place, change in told if change.kind == "return" and place < 46] == []


@pytest.mark.parametrize("seed", range(4))
def test_a_second_mode_is_no_drift(seed):
    rng = np.random.default_rng(seed + 1025)
    values = np.exp(0.01 * (rng.normal(size=150) + 10 * (rng.random(150) < 0.05)))
    assert not [change for _, change in lived(values)[0] if change.kind == "drift"]


def test_two_steps_in_one_direction_are_not_a_drift():
    values = stepped(stepped(noise(5), 1.05, 60), 1.05, 90)
    assert [change.kind for change in find_changes(values)] == ["step", "step"]
    assert [change.kind for _, change in lived(values)[0]] == ["step", "step"]


def test_a_series_that_scatters_more_is_noisier_and_no_step():
    values = np.exp(0.01 * np.random.default_rng(4).normal(size=200) * np.where(np.arange(200) < 100, 1, 3))
    assert [(change.kind, abs(change.at - 100) < 10) for change in find_changes(values)] == [("noisier", True)]


def test_what_moves_between_two_reports_of_one_commit_is_the_machine():
    values = stepped(noise(3), 1.1, 70)
    commits = [str(i // 30) for i in range(150)]
    assert [(change.kind, change.at) for change in find_changes(values, commits=commits)] == [("machine", 70)]
    watcher = Watcher()
    told = [c.kind for v, commit in zip(values, commits, strict=True) for c in watcher.observe(v, commit=commit)]
    assert told == ["machine"]


@QUICK
@given(SEEDS, st.floats(1.02, 1.04))
def test_a_step_begins_with_the_first_report_of_a_commit_only(seed, factor):
    values = stepped(noise(seed, 120), factor, 60)
    commits = [str(i // 3) for i in range(120)]
    watcher = Watcher()
    for value, commit in zip(values, commits, strict=True):
        watcher.observe(value, commit=commit)
    for change in find_changes(values, commits=commits) + watcher.changes:
        if change.kind in ("step", "return"):
            possible = [change.begin + i for i, share in enumerate(change.places) if share > 0]
            assert [place % 3 for place in (*possible, change.first, change.last)] == [0] * (len(possible) + 2)
            assert sum(change.places) == pytest.approx(1)


@QUICK
@given(SEEDS, st.floats(0.96, 1.04))
def test_names_of_commits_with_one_report_each_change_nothing(seed, factor):
    values = stepped(noise(seed), factor, 90)
    assert find_changes(values, commits=range(len(values))) == find_changes(values)


def test_ratios_with_intervals_show_a_smaller_step_than_intervals_alone_would():
    rng = np.random.default_rng(1)
    logs = 0.0035 * rng.normal(size=60)
    logs[40:] += 0.01
    half = 0.007 * rng.uniform(0.7, 1.4, size=60)
    (change,) = find_changes(np.exp(logs), low=np.exp(logs - half), high=np.exp(logs + half))
    assert abs(change.at - 40) <= 3
    assert change.low < 0.01 < change.high


def test_an_observation_with_a_wide_interval_counts_for_little():
    logs = 0.0035 * np.random.default_rng(1).normal(size=60)
    half = np.full(60, 0.007)
    logs[40:43] += 0.02
    half[40:43] = 0.2
    assert find_changes(np.exp(logs), low=np.exp(logs - half), high=np.exp(logs + half)) == []


def test_a_series_with_values_below_zero_is_one_of_logarithms():
    logs = 0.01 * np.random.default_rng(2).normal(size=80)
    logs[50:] += 0.1
    (change,) = find_changes(logs)
    assert (change.at, change.size) == (50, pytest.approx(0.1, abs=0.01))
    assert [(c.at, c.size) for _, c in lived(logs)[0]] == [(50, pytest.approx(0.1, abs=0.03))]


@QUICK
@given(SEEDS)
@example(10215)  # the infinite one made the series one of logs
def test_observations_that_are_not_finite_are_passed_over_and_counted(seed):
    values = stepped(noise(seed, 60), 1.25, 40)
    gaps = np.random.default_rng(seed).choice(39, size=3, replace=False)
    values[gaps] = [np.nan, np.inf, -np.inf]
    values[42] = np.nan
    taken = np.flatnonzero(np.isfinite(values))
    found = find_changes(values, low=0.99 * values, high=1.01 * values)
    same = find_changes(values[taken], low=0.99 * values[taken], high=1.01 * values[taken])
    assert [(change.at, change.size, change.chance) for change in found] == [
        (taken[change.at], change.size, change.chance) for change in same
    ]
    assert 40 in {change.at for change in found}
    told = lived(values)[0]
    assert [(i, change.at) for i, change in told] == [
        (taken[i], taken[change.at]) for i, change in lived(values[taken])[0]
    ]
    assert 40 in {change.at for _, change in told}


@pytest.mark.parametrize("values", [[], [1.0], [math.nan] * 9, [0.0] * 30, [1.0, 2.0, 3.0], [-1.0] * 20, [1e-320] * 20])
def test_series_that_say_nothing_have_no_change(values):
    assert find_changes(values) == []
    assert lived(values)[0] == []


def test_intervals_that_are_too_few_are_refused():
    with pytest.raises(ValueError, match=r"^3 values have 1 ends of intervals: give one for each, or None\.$"):
        find_changes([1.0] * 3, low=[1.0], high=[2.0])


@pytest.mark.long
def test_the_resolution_is_a_step_that_is_suspected_within_three_commits():
    seen = missed = 0
    for seed in range(12):
        values = noise(seed, 100)
        step = lived(values)[1].resolution
        for factor in (1.5, 0.5):
            behind = np.exp(
                math.log(values.mean()) + factor * step + 0.01 * np.random.default_rng(-seed % 99).normal(size=3)
            )
            told, _ = lived([*values, *behind])
            found = any(i >= 100 for i, _ in told)
            seen += found and factor > 1
            missed += not found and factor < 1
    assert seen >= 10
    assert missed >= 10


def test_nothing_is_resolved_in_a_series_without_history():
    assert lived([1.0, 1.1])[1].resolution == math.inf
    assert Watcher().resolution == math.inf
    assert Watcher(exact=True).resolution == 0.0


def test_a_floor_keeps_a_young_series_quiet():
    values = [*[100.0, 100.1, 99.9, 100.05, 99.95, 100.0, 100.1], *[103.0] * 3]
    assert len(find_changes(values)) == 1
    assert find_changes(values, floor=0.03) == []


def test_places_are_probabilities_and_ranges_grow_with_what_they_are_to_hold():
    (change,) = find_changes(stepped(noise(8), 1.012, 100))
    assert sum(change.places) == pytest.approx(1)
    assert change.range(0.5)[0] >= change.first >= change.range(0.95)[0]
    assert change.range(0.5)[1] <= change.last <= change.range(0.95)[1]
    assert change.range(0.95)[0] <= 100 <= change.range(0.95)[1]


@pytest.mark.parametrize("before", [3, 7, 12, 25])
def test_a_step_that_anybody_sees_is_never_below_what_its_series_resolves(before):
    """A level that nobody was told of yet does not pass for noise, also where there are few readings."""
    watcher = Watcher()
    for value in stepped(noise(before, before + 8), 1.2, before).tolist():
        watcher.observe(value)
        assert watcher.resolution < 0.15 or watcher.count < 6


def test_a_series_that_strays_often_resolves_what_stands_out_of_two_neighbours():
    """No step of it is suspected within three commits, for three outliers in a row are nothing new."""
    values = [value * (1.1 if place % 12 == 5 else 1.0) for place, value in enumerate(noise(11, 120).tolist())]
    _, watcher = lived(values)
    assert 0.02 < watcher.resolution < 0.1
