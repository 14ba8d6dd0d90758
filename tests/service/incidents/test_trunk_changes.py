"""The changes of one series, and of one case that fails."""

import random
from collections import defaultdict
from itertools import pairwise
from math import exp, log
from statistics import median
from uuid import UUID

import pytest

from pullback_service.incidents.failing_variants import MeasuredVariant, VariantFailure, failures_of
from pullback_service.incidents.trunk_changes import (
    Claim,
    TrunkReading,
    TrunkSeries,
    changes_of,
    key_of,
    observe,
    shown_by_reports,
    suspicions_in_hindsight,
    suspicions_of,
    watch,
)

PLACES = {commit: commit for commit in range(400)}
COUNT = TrunkSeries(1, 1, 1, "fused", exact=True, bigger_is_better=False, is_watched=True)
RATIO = COUNT._replace(exact=False)


def found_in(series, claims, readings):
    """The changes of a series with all that the detector suspects in its readings."""
    return changes_of(series, claims, suspicions_of(series, readings), PLACES)


def counted(*values):
    """The changes of a count at commits 0, 1, 2, …"""
    steps = [
        Claim(
            *(
                commit - 1,
                commit,
                "more" if now > before else "less",
                "exact",
                _ratio(before, now),
                None,
                None,
                None,
                None,
            ),
            before=before,
            after=now,
        )
        for commit, (before, now) in enumerate(pairwise(values), start=1)
        if now != before
    ]
    return changes_of(COUNT, steps, [], PLACES)


def _ratio(before, now):
    return log(now / before) if before > 0 and now > 0 else None


def lived(*levels, noise=0.002, seed=1, level=(), subject="", baseline=None):
    """Readings of ratios that lie at levels, each for so many commits; the baseline takes a second, or what `baseline` says."""
    chance = random.Random(seed)
    ratios = [at + chance.gauss(0, noise) for at, commits in levels for _ in range(commits)]
    return [
        TrunkReading(
            commit,
            exp(ratio) * (1.0 if baseline is None else baseline[commit]),
            ratio,
            ratio - 2 * noise,
            ratio + 2 * noise,
            level,
            subject,
        )
        for commit, ratio in enumerate(ratios)
    ]


def paired(reference, commit, outcome, ratio, doubt=None):
    return Claim(reference, commit, outcome, "paired", ratio, ratio - 0.01, ratio + 0.01, 20, doubt)


def summary(changes):
    return [(each.commit_id, each.worse, each.standing, each.ended_id) for each in changes]


def test_a_count_that_grows_from_nothing_is_a_change_and_ends_when_it_is_nothing_again():
    assert summary(counted(0, 0, 64, 64, 0)) == [(2, True, "claimed", 4)]


def alone(before, after, commit):
    ratio = _ratio(before, after)
    outcome = "more" if after > before else "less"
    rest = [None] * 4
    return Claim(commit - 1, commit, outcome, "exact", ratio, *rest, before=before, after=after, is_alone=True)


def test_a_count_that_one_report_says_alone_is_suspected():
    assert summary(changes_of(COUNT, [alone(1, 2, 3)], [], PLACES)) == [(3, True, "suspected", None)]
    there_and_back = [alone(1, 2, 3), alone(2, 1, 4)]
    assert summary(changes_of(COUNT, there_and_back, [], PLACES)) == [(3, True, "suspected", 4)]


def test_a_count_that_one_report_alone_says_was_less_ends_without_a_change_for_the_worse():
    back = alone(1, 2, 4)._replace(is_alone=False)
    assert summary(changes_of(COUNT, [alone(2, 1, 3), back], [], PLACES)) == [(3, False, "suspected", 4)]
    borne_out = [alone(2, 1, 3)._replace(is_alone=False), back]
    assert summary(changes_of(COUNT, borne_out, [], PLACES)) == [
        (3, False, "claimed", None),
        (4, True, "claimed", None),
    ]


def test_reports_that_each_count_otherwise_say_together_that_a_count_goes_back_and_forth():
    steps = [alone(1 + at % 2, 2 - at % 2, 3 + at) for at in range(5)]
    (only,) = changes_of(COUNT, steps, [], PLACES)
    assert (only.kind, only.standing, only.commit_id) == ("unsteady", "claimed", 3)


def test_a_level_that_is_not_wholly_back_is_two_changes():
    assert summary(counted(1, 4, 4, 3, 3)) == [(1, True, "claimed", None), (3, False, "claimed", None)]


def test_an_improvement_that_is_lost_is_a_change_for_the_worse():
    assert summary(counted(4, 1, 1, 4)) == [(1, False, "claimed", None), (3, True, "claimed", None)]


def test_one_commit_that_mends_two_ends_both():
    assert summary(counted(1, 2, 3, 3, 1)) == [(1, True, "claimed", 4), (2, True, "claimed", 4)]


def test_a_count_that_goes_back_and_forth_is_one_change_since_the_first_time():
    (only,) = counted(1, 1, 2, 1, 2, 1, 2)
    assert (only.kind, only.worse, only.reference_id, only.commit_id) == ("unsteady", None, 1, 2)


def count_claim(reference, commit, before, after):
    outcome = "more" if after > before else "less"
    return Claim(
        reference, commit, outcome, "exact", _ratio(before, after), None, None, None, None, before=before, after=after
    )


def test_comparisons_of_a_bisection_are_no_flips_of_a_count_and_end_together():
    """One array more from 17 to 22, of which only every fifth commit was measured, and others while it was searched."""
    searched = [count_claim(15, 20, 2, 3), count_claim(15, 17, 2, 3), count_claim(16, 17, 2, 3)]
    found = changes_of(COUNT, searched, [], PLACES)
    assert [(each.kind, each.reference_id, each.commit_id, each.ended_id) for each in found] == [
        ("step", 15, 17, None),
        ("step", 16, 17, None),
        ("step", 15, 20, None),
    ]
    mended = changes_of(COUNT, [*searched, count_claim(22, 23, 3, 2)], [], PLACES)
    assert {(each.kind, each.ended_id) for each in mended} == {("step", 23)}
    assert len(mended) == 3


def test_pairs_of_a_bisection_end_together_and_what_they_do_not_explain_stays():
    def paired(reference, commit, ratio):
        outcome = "slower" if ratio > 0 else "faster"
        return Claim(reference, commit, outcome, "paired", ratio, ratio - 0.01, ratio + 0.01, 20, None)

    searched = [paired(15, 20, 0.26), paired(15, 17, 0.25), paired(16, 17, 0.26), paired(22, 23, -0.26)]
    found = changes_of(RATIO, searched, [], PLACES)
    assert {each.ended_id for each in found} == {23}
    assert len(found) == 3
    two = [paired(10, 20, 0.3), paired(12, 13, 0.15), paired(16, 17, 0.15), paired(22, 23, -0.15)]
    assert [(each.commit_id, each.ended_id) for each in changes_of(RATIO, two, [], PLACES)] == [
        (13, None),
        (17, 23),
        (20, None),
    ]


def test_what_got_better_within_the_range_of_a_change_for_the_worse_is_no_end_of_it():
    within = changes_of(RATIO, [paired(35, 39, "slower", 0.02), paired(38, 39, "faster", -0.02)], [], PLACES)
    assert [(each.commit_id, each.worse, each.ended_id) for each in within] == [(39, True, None), (39, False, None)]
    behind = changes_of(RATIO, [paired(35, 39, "slower", 0.02), paired(38, 40, "faster", -0.02)], [], PLACES)
    assert [(each.commit_id, each.worse, each.ended_id) for each in behind] == [(39, True, 40)]


def test_more_is_better_where_it_is():
    series = RATIO._replace(bigger_is_better=True)
    (only,) = found_in(series, [paired(3, 4, "faster", 0.2)], [])
    assert only.worse is False


def test_a_pair_takes_the_place_of_a_suspicion_of_the_same_series():
    readings = lived((0.0, 12), (0.1, 8))
    (suspected,) = found_in(RATIO, [], readings)
    assert (suspected.evidence, suspected.standing) == ("levels", "borne_out")
    assert (suspected.reference_id, suspected.commit_id) == (11, 12)
    (claimed,) = found_in(RATIO, [paired(11, 12, "slower", 0.1)], readings)
    assert (claimed.evidence, claimed.standing) == ("paired", "claimed")


def far(commit, outcome, ratio, *, anchor=1):
    return paired(anchor, commit, outcome, ratio)._replace(of_anchor=True)


def test_what_got_worse_since_the_anchor_is_one_change_until_a_comparison_does_not_show_it():
    claims = [far(20, "slower", 0.05), far(30, "slower", 0.07), far(40, "ambiguous", 0.01), far(50, "same", 0.0)]
    (only,) = changes_of(RATIO, claims, [], PLACES)
    assert (only.evidence, only.reference_id, only.commit_id, only.ended_id) == ("anchor", 1, 20, 50)
    assert only.log_ratio == 0.05
    (still,) = changes_of(RATIO, claims[:3], [], PLACES)
    assert still.ended_id is None
    assert changes_of(RATIO, [far(20, "faster", -0.05)], [], PLACES) == []


def test_what_one_comparison_with_the_anchor_shows_is_claimed_once_another_shows_it():
    alone, later = (far(commit, "slower", 0.05)._replace(is_alone=True) for commit in (20, 30))
    again = alone._replace(is_alone=False)
    for claims, standing in (([alone], "suspected"), ([again], "claimed"), ([alone, later], "claimed")):
        (only,) = changes_of(RATIO, claims, [], PLACES)
        assert (only.commit_id, only.standing) == (20, standing)


def test_what_two_comparisons_in_a_row_show_to_be_twice_as_much_is_what_the_smaller_of_them_shows():
    sizes = (0.05, 0.11, 0.12, 0.3, 0.05)
    claims = [far(20 + 10 * week, "slower", size) for week, size in enumerate(sizes)]
    shown = [changes_of(RATIO, claims[:weeks], [], PLACES)[0] for weeks in range(1, 6)]
    assert [(each.log_ratio, each.commit_id) for each in shown] == [(0.05, 20)] * 2 + [(0.11, 30)] * 3


def test_a_suspicion_explains_nothing_of_what_the_anchor_shows():
    found = found_in(RATIO, [far(14, "slower", 0.1)], lived((0.0, 12), (0.1, 3)))
    assert [(each.evidence, each.standing) for each in found] == [("levels", "suspected"), ("anchor", "claimed")]


def test_what_known_changes_explain_is_no_drift():
    step = paired(9, 10, "slower", 0.05)
    assert [each.evidence for each in changes_of(RATIO, [step, far(20, "slower", 0.055)], [], PLACES)] == ["paired"]
    both = changes_of(RATIO, [step, far(20, "slower", 0.1)], [], PLACES)
    assert [each.evidence for each in both] == ["paired", "anchor"]
    mended = [step, paired(14, 15, "faster", -0.05), far(20, "slower", 0.05)]
    assert [each.evidence for each in changes_of(RATIO, mended, [], PLACES)] == ["paired", "anchor"]


def test_a_comparison_with_the_anchor_says_nothing_of_a_suspicion_in_between():
    (only,) = found_in(RATIO, [far(18, "same", 0.0)], lived((0.0, 12), (0.1, 8)))
    assert only.standing == "borne_out"


def test_pairs_around_a_suspicion_refute_it_or_leave_it_open():
    readings = lived((0.0, 12), (0.1, 8))
    for outcome, doubt, standing in (
        ("same", None, "refuted"),
        ("ambiguous", "open_interval", "ambiguous"),
        ("ambiguous", "equal_code", "refuted"),
    ):
        (only,) = found_in(RATIO, [paired(10, 13, outcome, 0.0, doubt)], readings)
        assert only.standing == standing
    (elsewhere,) = found_in(RATIO, [paired(3, 5, "same", 0.0)], readings)
    assert elsewhere.standing == "borne_out"


def test_what_is_claimed_of_an_alarm_is_not_suspected_a_second_time_beside_it():
    """A slow step, of which pairs confirmed a part that its range as it is now does not meet: as the first stair of a drift."""
    chance = random.Random(5)
    values = [(1 + 0.02 * (commit >= 20)) * exp(chance.gauss(0, 0.01)) for commit in range(32)]
    readings = [TrunkReading(commit, value, None, None, None, ()) for commit, value in enumerate(values)]
    ((change, _, since, told_at, _),) = suspicions_of(RATIO, readings)
    assert (since, change.commit_id < 25, told_at) == (0, True, 28)
    for first, last, size, expected in (
        (24, 26, 0.7, ["paired"]),
        (24, 26, 0.4, ["levels", "paired"]),  # it is more than twice as much
        (24, 26, -0.7, ["levels", "paired"]),
        (28, 29, 0.7, ["levels", "paired"]),  # behind the alarm
    ):
        claim = paired(first, last, "slower" if size > 0 else "faster", size * change.log_ratio)
        assert [each.evidence for each in found_in(RATIO, [claim], readings)] == expected


def test_another_level_equal_code_and_what_is_not_watched_are_not_suspected():
    before, after = lived((0.0, 12)), lived((0.1, 20))[12:]
    other = [each._replace(level=("another harness",)) for each in after]
    assert found_in(RATIO, [], [*before, *other]) == []
    equal = [each._replace(subject="digest") for each in [*before, *after]]
    assert found_in(RATIO, [], equal) == []
    assert found_in(RATIO._replace(is_watched=False), [], [*before, *after]) == []
    assert len(found_in(RATIO, [], [*before, *after])) == 1


def test_a_variant_is_not_suspected_where_its_ratio_moved_because_the_baseline_did():
    slower, faster = [1.0] * 20 + [1.38] * 20, [1.38] * 20 + [1.0] * 20
    assert not found_in(RATIO, (), lived((0.0, 20), (-log(1.38), 20), baseline=slower))
    assert not found_in(RATIO, (), lived((0.0, 20), (log(1.38), 20), baseline=faster))


def test_a_variant_that_went_the_other_way_than_its_ratio_is_not_suspected():
    faster = [1.0] * 20 + [1 / 2.4] * 20
    assert not found_in(RATIO, (), lived((0.0, 20), (log(2.4 * 0.88), 20), baseline=faster))
    slower = [1.0] * 20 + [2.0] * 20
    assert not found_in(RATIO, (), lived((0.0, 20), (log(0.8), 20), baseline=slower))


def test_a_variant_that_moved_less_than_its_baseline_is_suspected_of_what_it_moved_itself():
    faster = [1.0] * 20 + [1 / 2.4] * 20
    (only,) = found_in(RATIO, (), lived((0.0, 20), (log(2.4 * 1.3), 20), baseline=faster))
    assert (only.worse, only.low, only.high) == (True, None, None)
    assert abs(only.log_ratio - log(1.3)) < 0.01


@pytest.mark.long
def test_values_that_scatter_say_what_moved_once_there_are_enough_of_them():
    """The machine is 4 % faster or slower from commit to commit, for a variant and its baseline alike."""
    suspected = {"variant": 0, "baseline": 0}
    for seed in range(40):
        chance = random.Random(seed)
        drift = [exp(chance.gauss(0, 0.04)) for _ in range(40)]
        moved = [each * exp(-0.05 * (commit >= 24)) for commit, each in enumerate(drift)]
        for mover, baseline in (("variant", drift), ("baseline", moved)):
            suspected[mover] += bool(found_in(RATIO, (), lived((0.0, 24), (0.05, 16), baseline=baseline, seed=seed)))
    assert suspected["variant"] >= 36
    assert suspected["baseline"] <= 4


@pytest.mark.parametrize(("size", "raised", "likely"), [(0.02, 28, 31), (0.3, 22, 23)])
def test_the_three_commits_behind_the_alarm_make_it_likely_and_what_raised_it_does_not(size, raised, likely):
    """A step at commit 20; the three behind it make one likely that is clear at once, as the larger is."""
    chance = random.Random(5)
    values = [(1 + size * (commit >= 20)) * exp(chance.gauss(0, 0.01)) for commit in range(likely + 1)]
    readings = [TrunkReading(commit, value, None, None, None, ()) for commit, value in enumerate(values)]
    looks = [found_in(RATIO, (), readings[:count]) for count in range(1, likely + 2)]
    assert [commit for commit, found in enumerate(looks) if found] == [*range(raised, likely + 1)]
    assert [found[0].standing for found in looks[raised:]] == ["suspected"] * (likely - raised) + ["borne_out"]


def test_a_baseline_is_suspected_by_its_own_values():
    chance = random.Random(3)
    values = [level * exp(chance.gauss(0, 0.01)) for level in [1.0] * 20 + [1.38] * 20]
    readings = [TrunkReading(commit, value, None, None, None, ()) for commit, value in enumerate(values)]
    assert summary(found_in(RATIO, (), readings)) == [(20, True, "borne_out", None)]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("commits", [4, 6, 10])
@pytest.mark.parametrize("has_baseline", [True, False])
def test_a_level_that_is_left_again_is_never_taken_back_and_ends_within_three_commits(commits, has_baseline):
    readings = lived((0.0, 16), (0.26, commits), (0.0, 12))
    if not has_baseline:
        readings = [each._replace(log_ratio=None, low=None, high=None) for each in readings]
    back = 16 + commits
    for count in range(20, len(readings) + 1):
        (only,) = found_in(RATIO, [], readings[:count])
        assert (only.commit_id, only.worse) == (16, True)
        assert only.ended_id == (back if count >= back + 3 else None), count


def test_a_level_that_is_left_for_a_while_and_reached_again_goes_on():
    away = [each._replace(level=("another machine",)) for each in lived((0.3, 20))[10:14]]
    assert found_in(RATIO, [], [*lived((0.0, 10)), *away, *lived((0.0, 24))[14:]]) == []


def test_a_count_that_was_long_steady_does_not_go_back_and_forth():
    steps = [
        Claim(at - 1, at, "more" if after > before else "less", "exact", None, None, None, None, None, before, after)
        for at, before, after in ((10, 1, 2), (100, 2, 1), (200, 1, 2))
    ]
    assert summary(changes_of(COUNT, steps, [], PLACES)) == [(10, True, "claimed", 100), (200, True, "claimed", None)]


@pytest.mark.long
def test_the_commit_of_a_small_step_lies_within_the_range_that_is_compared():
    """As it is suspected first: a comparison beside the commit would refute what is there."""
    first = []
    for seed in range(120):
        readings = lived((0.0, 40), (0.0045, 20), noise=0.003, seed=seed)
        watcher = watch(RATIO.floor, readings[:41])
        for until in range(42, len(readings)):
            observe(watcher, readings[until - 1])
            found = suspicions_of(RATIO, readings[:until], {key_of(()): watcher})
            suspicions = [one.change for one in found if one.change.worse]
            if suspicions:
                first.append(suspicions[0])
                break
    hits = sum(change.reference_id < 40 <= change.commit_id for change in first)
    assert len(first) >= 50
    assert hits >= 0.9 * len(first)


def test_steady_series_are_not_suspected():
    suspected = [seed for seed in range(60) if found_in(RATIO, [], lived((0.0, 100), seed=seed))]
    assert suspected == []


def failing(commit, *, kind="gradient", variant=None, report=1):
    return VariantFailure(1, 1, variant, kind, "wrong", commit, UUID(int=report))


def measured(*commits, variant="fused"):
    return [MeasuredVariant(1, 1, variant, commit) for commit in commits]


def test_a_wrong_gradient_lasts_from_the_last_right_one_to_the_next():
    found = failures_of([failing(5), failing(7), failing(8)], measured(1, 3, 9, 10), PLACES)
    assert [(each.reference_id, each.commit_id, each.ended_id, each.standing) for each in found] == [
        (3, 5, 9, "claimed")
    ]


def test_what_never_ran_is_no_change():
    assert failures_of([failing(1), failing(2)], measured(3), PLACES) == []
    assert failures_of([failing(2, kind="workload")], [], PLACES) == []


def test_what_does_not_run_is_claimed_by_a_second_report():
    (once,) = failures_of([failing(5, kind="workload")], measured(4), PLACES)
    assert once.standing == "suspected"
    twice = [failing(5, kind="workload"), failing(6, kind="workload", report=2)]
    (again,) = failures_of(twice, measured(4), PLACES)
    assert (again.kind, again.standing, again.commit_id) == ("failed", "claimed", 5)


def test_a_case_that_another_report_measured_did_run_but_its_gradient_stays_wrong():
    assert failures_of([failing(5, kind="workload")], measured(4, 5, 6), PLACES) == []
    (wrong,) = failures_of([failing(5)], measured(4, 5, 6), PLACES)
    assert (wrong.commit_id, wrong.ended_id) == (5, 6)


def test_one_variant_fails_alone():
    found = failures_of([failing(5, variant="native")], measured(4, 5, 6) + measured(4, variant="native"), PLACES)
    assert [(each.variant, each.commit_id) for each in found] == [("native", 5)]


def reports_at(*levels, noise=0.01, seed=1):
    """Reports one by one: a natural log and the commit of each level, for so many reports."""
    chance = random.Random(seed)
    return [
        TrunkReading(commit, exp(at + chance.gauss(0, noise)), None, None, None, ())
        for at, commits, count in levels
        for commit in commits
        for _ in range(count)
    ]


def pooled(reports):
    """The readings of reports: the median of each commit."""
    of_commits = defaultdict(list)
    for report in reports:
        of_commits[report.commit_id].append(report.value)
    return [
        TrunkReading(commit, median(values), None, None, None, (), reports=len(values))
        for commit, values in of_commits.items()
    ]


def test_a_commit_is_accused_where_its_first_report_lies_at_the_new_level_and_of_nothing_within_its_reports():
    for moved, accused in (((0.0, [12], 9), []), ((0.2, [12], 9), [(11, 12)])):
        reports = reports_at((0.0, range(12), 1), moved, (0.2, [12], 9), (0.2, range(13, 24), 1))
        suspicions = suspicions_of(RATIO, pooled(reports))
        assert suspicions
        shown = shown_by_reports(RATIO, suspicions, reports, PLACES)
        assert [(one.change.reference_id, one.change.commit_id) for one in shown] == accused


@pytest.mark.long
@pytest.mark.parametrize(("sigmas", "most_lost"), [(2, 2), (3, 1)])
def test_a_small_step_behind_several_reports_of_each_commit_stays_with_its_commit(sigmas, most_lost):
    def holds_20(change):
        return change.reference_id < 20 <= change.commit_id

    suspected = shown = 0
    for seed in range(100):
        reports = reports_at((0.0, range(20), 3), (0.01 * sigmas, range(20, 32), 3), seed=seed)
        suspicions = suspicions_in_hindsight(RATIO, pooled(reports))
        suspected += any(holds_20(one.change) for one in suspicions)
        shown += any(holds_20(one.change) for one in shown_by_reports(RATIO, suspicions, reports, PLACES))
    assert suspected >= 97
    assert shown >= suspected - most_lost


@pytest.mark.parametrize("seed", [7, 10, 16])
def test_a_slow_last_report_does_not_take_a_step_from_the_next_commit(seed):
    reports = reports_at((0.0, range(12), 3), (0.03, range(12, 24), 3), seed=seed)
    reports[35] = reports[35]._replace(value=exp(0.02))
    (only,) = shown_by_reports(RATIO, suspicions_of(RATIO, pooled(reports)), reports, PLACES)
    assert (only.change.reference_id, only.change.commit_id) == (11, 12)


def test_a_range_that_reports_narrowed_is_still_that_of_what_pairs_confirmed_in_it():
    """A drift, by the readings since the ninth commit, and by their reports since the thirteenth."""
    reports = reports_at((0.0, range(12), 2), (0.2, range(12, 24), 2))
    (found,) = suspicions_of(RATIO, pooled(reports))
    drift = found._replace(change=found.change._replace(reference_id=8, commit_id=16))
    shown = shown_by_reports(RATIO, [drift], reports, PLACES)
    assert [(one.change.reference_id, one.change.commit_id) for one in shown] == [(11, 12)]
    (only,) = changes_of(RATIO, [paired(8, 10, "slower", 0.05)], shown, PLACES)
    assert (only.evidence, only.commit_id) == ("paired", 10)
    assert len(changes_of(RATIO, [paired(5, 7, "slower", 0.05)], shown, PLACES)) == 2


def test_the_newest_two_readings_take_nothing_back_in_reports_either():
    reports = reports_at((0.0, range(12), 2), (0.2, range(12, 20), 2), (0.0, [20, 21], 4))
    suspicions = suspicions_of(RATIO, pooled(reports))
    assert len(shown_by_reports(RATIO, suspicions, reports, PLACES)) == len(suspicions) > 0
