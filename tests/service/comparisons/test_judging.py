"""What may be said of a series at two commits: no claim without numbers that bear it out."""

from dataclasses import replace
from math import isfinite, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service.readings.making import reading

from pullback_runners.measurement.outcomes import margins
from pullback_service.comparisons.judging import (
    CALLS_DIFFER,
    Judgement,
    UploadedComparison,
    as_resolved,
    judge,
    trend,
    urgency,
)
from pullback_service.ratio import Ratio
from pullback_service.uploaded_claims import LEAST_CLAIM

SLOWER = UploadedComparison("slower", Ratio(0.05, 0.04, 0.06, 20), claim=0.01, margin=0.01)
ratios = st.floats(-3, 3)
outcomes = st.sampled_from(["faster", "slower", "same", "ambiguous", "less", "more", "equal", "failed"])
stated = st.builds(
    UploadedComparison,
    outcome=outcomes,
    ratio=st.builds(Ratio, st.none() | ratios, st.none() | ratios, st.none() | ratios, st.none() | st.integers(0, 100)),
    claim=st.none() | st.floats(0, 1),
    margin=st.none() | st.floats(0, 1),
    provisional=st.booleans(),
    quality=st.sampled_from(["clean", "busy"]),
    dirty=st.booleans(),
)
sides = st.builds(
    reading,
    st.floats(0, 1e9),
    quality=st.sampled_from(["clean", "busy"]),
    dirty=st.booleans(),
    baseline=st.none() | st.just("unfused"),
    log_ratio=ratios,
    low=ratios,
    high=ratios,
)


def changed(said, **changes):
    """A statement with other fields, or with another ratio."""
    ratio = {name: changes.pop(name) for name in Ratio._fields if name in changes}
    return replace(said, ratio=said.ratio._replace(**ratio), **changes)


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, "slower"),
        ({"low": -0.01}, "ambiguous"),  # the interval holds zero
        ({"claim": 0.06}, "ambiguous"),  # less than the machine's floor
        ({"outcome": "faster"}, "ambiguous"),  # the other way round
        ({"outcome": "same"}, "ambiguous"),
        ({"outcome": "more"}, "ambiguous"),  # said of counts, and this is none
        ({"outcome": "equal"}, "ambiguous"),
        ({"n": None}, "ambiguous"),
        ({"n": 1}, "ambiguous"),  # no interval comes from one group
        ({"low": None}, "ambiguous"),
        ({"quality": "busy", "provisional": True}, "likely_slower"),  # and nobody knows the floor there
        ({"dirty": True}, "ambiguous"),
        ({"outcome": "ambiguous"}, "ambiguous"),
        ({"outcome": "nonsense"}, "ambiguous"),
        ({"log_ratio": 0.004, "low": 0.003, "high": 0.005, "claim": None}, "ambiguous"),  # below anybody's claim
    ],
)
def test_an_upload_is_believed_when_its_numbers_bear_it_out(change, outcome):
    judgement = judge(None, None, [changed(SLOWER, **change)], exact=False)
    assert judgement.outcome == outcome
    assert (judgement.reason is None) == (outcome == "slower")


@pytest.mark.parametrize(
    ("low", "high", "margin", "provisional", "outcome"),
    [
        (-0.009, 0.009, None, False, "same"),
        (-0.02, 0.009, None, False, "ambiguous"),
        (-0.02, 0.009, 0.03, False, "same"),
        (-0.009, 0.009, None, True, "ambiguous"),
    ],
)
def test_same_is_an_interval_inside_a_margin_that_is_known(low, high, margin, provisional, outcome):
    said = UploadedComparison("same", Ratio(0.0, low, high, 20), margin=margin, provisional=provisional)
    assert judge(None, None, [said], exact=False).outcome == outcome


def test_a_busy_machine_takes_no_claim_away_that_its_own_floor_bears_out():
    busy = replace(SLOWER, quality="busy")
    assert judge(None, None, [busy], exact=False).outcome == "slower"
    unknown = judge(None, None, [replace(busy, provisional=True)], exact=False)
    assert (unknown.outcome, unknown.evidence, unknown.provisional) == ("likely_slower", "paired", True)
    assert "busy machine" in unknown.reason
    assert judge(None, None, [replace(SLOWER, provisional=True)], exact=False).outcome == "slower"
    equal = UploadedComparison("equal", Ratio(0.0, n=20), quality="busy", provisional=True)
    assert judge(reading(100), reading(100), [equal], exact=True).outcome == "equal"


@pytest.mark.parametrize("groups", [2, 5, 11, 40, 100])
def test_few_groups_on_a_busy_machine_are_judged_by_the_floor_of_the_runner(groups):
    """Reports of older releases claim from 2 % on, however few groups they have."""
    floor = margins(busy_groups=groups).claim
    below, beyond = (
        UploadedComparison(
            "slower", Ratio(each, each - 0.001, each + 0.001, groups), 0.02, quality="busy", provisional=True
        )
        for each in (0.99 * floor, 1.01 * floor)
    )
    judgement = judge(None, None, [below], exact=False)
    assert (judgement.outcome, judgement.threshold) == ("ambiguous", pytest.approx(floor))
    if floor > below.claim:
        assert f"{groups} groups on a busy machine" in judgement.reason
        assert judgement.reason.endswith("measure again on a quieter one, or for longer.")
    assert judge(None, None, [beyond], exact=False).outcome == "likely_slower"
    assert judge(None, None, [replace(below, quality="clean", claim=None)], exact=False).outcome == "slower"


def test_a_margin_is_not_believed_however_wide():
    said = UploadedComparison("same", Ratio(0.5, -0.2, 1.2, 20), margin=100.0)
    assert judge(None, None, [said], exact=False).outcome == "ambiguous"


@pytest.mark.parametrize(
    ("change", "outcome", "reason"),
    [
        ({}, "more", None),
        ({"outcome": "equal"}, "ambiguous", "states equal, but its ratio does not"),
        ({"outcome": "less"}, "ambiguous", "states less, but its ratio does not"),
        ({"outcome": "slower"}, "ambiguous", "states slower for a count"),
        ({"outcome": "ambiguous"}, "ambiguous", "Counts differ between processes"),
        ({"log_ratio": None}, "more", None),  # from zero
    ],
)
def test_a_stated_count_is_believed_when_its_ratio_bears_it_out(change, outcome, reason):
    judgement = judge(None, None, [changed(UploadedComparison("more", Ratio(log(2), n=20)), **change)], exact=True)
    assert (judgement.outcome, judgement.evidence) == (outcome, "exact")
    assert (judgement.reason is None) if reason is None else (reason in judgement.reason)


def test_counts_that_differ_are_not_claimed_where_the_software_differed_too():
    software = "numpy 1.26.4, then 2.4.0"
    judgement = judge(reading(100), reading(200), [], exact=True, changed_software=software)
    assert (judgement.outcome, judgement.evidence, judgement.ratio.log_ratio) == ("ambiguous", "exact", log(2))
    assert judgement.reason == (
        "Counted with different software (numpy 1.26.4, then 2.4.0): count both commits in one installation to know."
    )
    assert judge(reading(100), reading(100), [], exact=True, changed_software=software).outcome == "equal"
    assert judge(reading(1.0), None, [], exact=True, changed_software=software).outcome == "not_comparable"
    # Whoever measured both commits did so with one software.
    for stated, outcome in (
        (UploadedComparison("more", Ratio(log(2), n=20)), "more"),
        (UploadedComparison("equal", Ratio(0.0, n=20)), "equal"),
    ):
        assert judge(reading(100), reading(200), [stated], exact=True, changed_software=software).outcome == outcome


def test_what_only_one_session_can_count_is_believed_of_it_and_ambiguous_between_two():
    less = UploadedComparison("less", Ratio(-log(2), -log(2), -log(2), n=1))
    judgement = judge(reading(200), reading(100), [less], exact=False, counted_together=0.0)
    assert (judgement.outcome, judgement.evidence, judgement.threshold) == ("less", "exact", None)
    assert (
        judge(reading(100), reading(200), [less], exact=False, counted_together=0.0).outcome == "less"
    )  # another session's
    apart = judge(reading(200), reading(100), [], exact=False, counted_together=0.0)
    assert (apart.outcome, apart.evidence) == ("ambiguous", "values")
    assert apart.reason.startswith("Counted in two sessions")
    nearly = changed(less, outcome="equal", log_ratio=0.0009)
    assert judge(None, None, [nearly], exact=False, counted_together=0.001).outcome == "equal"
    assert judge(None, None, [nearly], exact=False, counted_together=0.0).outcome == "ambiguous"


def test_a_stated_count_gives_way_to_what_the_commits_counted():
    equal, more = UploadedComparison("equal", Ratio(0.0, n=20)), UploadedComparison("more", Ratio(log(2), n=20))
    assert judge(reading(100), reading(200), [more], exact=True).outcome == "more"
    judgement = judge(reading(100), reading(200), [equal], exact=True)
    assert (judgement.outcome, judgement.reason) == (
        "ambiguous",
        "An upload states equal, but the counts of the two commits do not.",
    )
    assert judge(reading(100, consistent=False), reading(200), [more], exact=True).outcome == "ambiguous"
    assert (
        judge(reading(100, dirty=True), reading(100), [more], exact=True).outcome == "more"
    )  # says nothing of the commit


def test_statements_that_cannot_both_hold_contradict_each_other():
    def outcome(*said, exact=False):
        found = judge(None, None, said, exact=exact)
        assert (found.reason == "Reports contradict each other.") == (found.outcome == "ambiguous")
        return found.outcome

    faster = UploadedComparison("faster", Ratio(-0.1, -0.11, -0.09, 20))
    assert outcome(faster, UploadedComparison("same", Ratio(0.0, -0.001, 0.001, 40))) == "ambiguous"
    nearly = UploadedComparison("faster", Ratio(-0.006, -0.009, -0.003, 20))
    assert (
        outcome(nearly, UploadedComparison("same", Ratio(-0.004, -0.008, 0.001, 40))) == "same"
    )  # they overlap: more groups know better
    assert outcome(faster, UploadedComparison("faster", Ratio(-0.2, -0.21, -0.19, 30))) == "faster"
    assert (
        outcome(
            UploadedComparison("more", Ratio(log(1.5), n=20)), UploadedComparison("equal", Ratio(0.0, n=40)), exact=True
        )
        == "ambiguous"
    )


def test_nothing_is_claimed_of_a_commit_whose_gradient_was_wrong_in_another_report():
    wrong = "The gradient was wrong against x."
    for sides, said, exact in (
        ((reading(1.0), reading(0.5)), [UploadedComparison("faster", Ratio(-0.1, -0.11, -0.09, 20))], False),
        ((reading(1.0), reading(0.5)), [], False),
        ((reading(1), reading(2)), [], True),
    ):
        judgement = judge(*sides, said, exact=exact, wrong_gradient=wrong)
        assert (judgement.outcome, judgement.reason) == ("ambiguous", f"In another report of these commits: {wrong}")
    assert judge(reading(1), None, [], exact=True, failure=wrong, wrong_gradient=wrong).outcome == "failed"


def test_a_candidate_that_failed_in_one_upload_is_not_claimed_by_another():
    faster = UploadedComparison("faster", Ratio(-0.1, -0.11, -0.09, 20))
    for order in ([faster, UploadedComparison("failed")], [UploadedComparison("failed"), faster]):
        judgement = judge(reading(1.0), reading(0.9), order, exact=False)
        assert (judgement.outcome, "contradict" in judgement.reason) == ("ambiguous", True)


def test_where_bigger_is_better_slower_is_less():
    fewer = UploadedComparison("slower", Ratio(-0.05, -0.06, -0.04, 20))
    assert judge(None, None, [fewer], exact=False, bigger_is_better=True).outcome == "slower"
    assert judge(None, None, [fewer], exact=False).outcome == "ambiguous"


def test_the_threshold_is_the_claim_or_half_the_interval():
    assert judge(None, None, [SLOWER], exact=False).threshold == pytest.approx(0.01)
    assert judge(None, None, [replace(SLOWER, claim=None)], exact=False).threshold == pytest.approx(0.01)
    assert judge(None, None, [replace(SLOWER, claim=0.03)], exact=False).threshold == pytest.approx(0.03)


def test_the_statement_with_the_most_groups_speaks_unless_others_contradict_it():
    more = changed(SLOWER, log_ratio=0.06, high=0.07, n=40)
    assert judge(None, None, [more, SLOWER], exact=False).ratio.log_ratio == 0.06
    faster = UploadedComparison("faster", Ratio(-0.05, -0.06, -0.04, 6))
    contradicted = judge(None, None, [more, faster], exact=False)
    assert (contradicted.outcome, contradicted.reason) == ("ambiguous", "Reports contradict each other.")
    busy = replace(faster, quality="busy")
    assert judge(None, None, [more, busy], exact=False).outcome == "ambiguous"
    assert judge(None, None, [more, replace(busy, provisional=True)], exact=False).outcome == "slower"  # claims nothing


def test_counts_compare_by_difference():
    for older, newer, outcome, ratio in (
        (100, 100, "equal", 0.0),
        (0, 0, "equal", None),
        (0, 8, "more", None),
        (8, 0, "less", None),
        (100, 200, "more", pytest.approx(0.693147)),
    ):
        judgement = judge(reading(older), reading(newer), [], exact=True)
        assert (judgement.evidence, judgement.outcome, judgement.ratio.log_ratio) == ("exact", outcome, ratio)


@pytest.mark.parametrize(
    ("older", "newer", "outcome"),
    [((9, 8, 10), (10, None, None), "ambiguous"), ((9, 8, 9), (12, 10, 12), "more"), ((9, 8, 10), (9, 9, 11), "equal")],
)
def test_counts_that_differ_from_call_to_call_compare_where_all_of_one_are_apart(older, newer, outcome):
    ends = [reading(value)._replace(process_low=low, process_high=high) for value, low, high in (older, newer)]
    judgement = judge(*ends, [], exact=True)
    assert judgement.outcome == outcome
    assert (judgement.reason == CALLS_DIFFER) == (outcome == "ambiguous")


@pytest.mark.parametrize(
    ("older", "newer", "outcome", "said"),
    [
        (reading(1, consistent=False), reading(2), "ambiguous", "Counts differ between reports of the reference."),
        (reading(1), reading(2, consistent=False), "ambiguous", "Counts differ between reports of the candidate."),
        (reading(1, dirty=True), reading(2), "ambiguous", "Counted with uncommitted changes."),
        (
            reading(1, method="nep49"),
            reading(2, method="pool"),
            "not_comparable",
            "different methods, 'nep49' and 'pool'",
        ),
        (None, reading(2), "not_comparable", "Not measured at the reference."),
        (reading(1), None, "not_comparable", "Not measured at the candidate."),
    ],
)
def test_counts_that_do_not_compare_are_not_compared(older, newer, outcome, said):
    judgement = judge(older, newer, [], exact=True)
    assert judgement.outcome == outcome
    assert said in judgement.reason


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("median of 12 rounds", "median of rounds", True),
        ("median of 12 rounds", "median of 9 rounds", True),
        ("median of 12 rounds", "median of 12 samples", False),
        ("median of a process, 60 values in all", "median of a process", True),
        ("least of 3 rounds", "least of 9 rounds", False),
        (None, "median of rounds", False),
        (None, None, True),
    ],
)
def test_how_many_values_a_median_is_of_is_no_part_of_the_method(one, other, same):
    judgement = judge(reading(1, method=one), reading(2, method=other), [], exact=False)
    assert judgement.outcome == ("likely_slower" if same else "not_comparable")


def test_what_failed_at_the_candidate_is_a_failure():
    assert judge(reading(1), None, [], exact=False, failure="broke").reason == "broke"
    assert judge(reading(1), None, [], exact=False, failure="broke").outcome == "failed"
    assert judge(None, None, [UploadedComparison("failed")], exact=False).outcome == "failed"
    assert (
        judge(reading(1), reading(2), [UploadedComparison("failed")], exact=False).evidence == "values"
    )  # it ran elsewhere
    was = judge(None, reading(1), [], exact=False, reference_failure="broke")
    assert (was.outcome, was.reason) == ("not_comparable", "Not measured at the reference: broke")


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
def test_values_of_different_times_claim_nothing_however_far_apart(older, newer):
    judgement = judge(reading(older), reading(newer), [], exact=False)
    assert judgement.evidence == "values"
    assert judgement.outcome in {"ambiguous", "likely_slower", "likely_faster"}


@given(st.none() | sides, st.none() | sides, st.lists(stated, max_size=4), st.booleans(), st.booleans())
def test_a_claim_always_has_its_numbers(older, newer, said, exact, bigger):
    judgement = judge(older, newer, said, exact=exact, bigger_is_better=bigger)
    if judgement.outcome in {"slower", "faster"}:
        assert judgement.evidence == "paired"
        assert judgement.ratio.low > 0 or judgement.ratio.high < 0
        assert abs(judgement.ratio.log_ratio) >= LEAST_CLAIM
        assert (judgement.outcome == "slower") == ((judgement.ratio.log_ratio > 0) != bigger)
    if judgement.outcome in {"likely_slower", "likely_faster"}:
        assert judgement.evidence in {"paired", "ratios", "values"}
        assert judgement.provisional
        assert judgement.reason
        assert (judgement.outcome == "likely_slower") == ((judgement.ratio.log_ratio > 0) != bigger)
    if judgement.evidence == "paired" and judgement.outcome in {"slower", "faster"}:
        assert (
            abs(judgement.ratio.log_ratio) >= judgement.threshold - 1e-12
            or judgement.ratio.low * judgement.ratio.high > 0
        )
    rank, size = urgency(judgement, bigger_is_better=bigger)
    assert 0 <= rank <= 7
    assert isfinite(size)


@given(stated)
def test_turned_twice_is_the_same_and_turned_once_the_opposite(said):
    assert said.turned().turned() == said
    opposite = {"slower": "faster", "faster": "slower", "less": "more", "more": "less"}
    one, other = (judge(None, None, [each], exact=False).outcome for each in (said, said.turned()))
    assert other == opposite.get(one, one)


def test_the_worst_comes_first():
    said = [
        judge(reading(1), None, [], exact=False, failure="broke"),
        judge(reading(0), reading(9), [], exact=True),
        judge(None, None, [changed(SLOWER, log_ratio=0.5, high=0.6)], exact=False),
        judge(None, None, [SLOWER], exact=False),
        judge(reading(1), reading(2), [], exact=False),
        judge(reading(1), reading(1.05), [], exact=False),
        judge(reading(4), reading(1), [], exact=True),
        judge(reading(2), reading(1), [], exact=True),
        judge(reading(2), reading(1), [], exact=False),
        judge(reading(1), reading(1), [], exact=True),
        judge(None, reading(1), [], exact=True),
    ]
    keys = [urgency(judgement, bigger_is_better=False) for judgement in said]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_more_is_worse_unless_bigger_is_better():
    assert trend("more", bigger_is_better=False) == trend("less", bigger_is_better=True) == "worse"
    assert trend("less", bigger_is_better=False) == trend("more", bigger_is_better=True) == "better"
    for bigger in (False, True):  # these say already which is the better direction
        assert trend("likely_slower", bigger_is_better=bigger) == "likely_worse"
        assert trend("likely_faster", bigger_is_better=bigger) == "likely_better"
    assert trend("ambiguous", bigger_is_better=False) == "neither"


QUIET, LOUD = (1.0, 1.01, 1.02, 1.03), (0.5, 1.0, 1.5, 2.0)


def unpaired(older, newer, **more):
    found = judge(older, newer, [], exact=False, **more)
    return found.outcome, found.evidence


def test_values_are_likely_apart_where_they_differ_by_more_than_drift_and_scatter():
    older, newer = reading(1.0, QUIET), reading(1.5, QUIET)
    found = judge(older, newer, [], exact=False)
    assert (found.outcome, found.evidence, found.threshold, found.provisional) == ("likely_slower", "values", 0.1, True)
    assert found.ratio.low < 0.405 < found.ratio.high
    assert unpaired(older, newer, bigger_is_better=True) == ("likely_faster", "values")
    assert unpaired(older, reading(1.05, QUIET)) == ("ambiguous", "values")  # less than machines drift
    assert unpaired(reading(1.0, LOUD), reading(1.5, LOUD)) == ("ambiguous", "values")
    assert unpaired(older, reading(1.5)) == ("likely_slower", "values")  # of one process, by drift alone
    assert unpaired(older, reading(1.5, dirty=True)) == ("ambiguous", "values")
    assert unpaired(older, reading(1.5, quality="busy")) == ("likely_slower", "values")


def test_ratios_to_the_baseline_speak_before_values_do():
    older = reading(1.0, QUIET, baseline="unfused", log_ratio=-0.5, low=-0.51, high=-0.49)
    drifted = reading(2.0, QUIET, baseline="unfused", log_ratio=-0.5, low=-0.51, high=-0.49)
    assert unpaired(older, drifted) == ("ambiguous", "ratios")  # the machine: both variants took twice as long
    slower = drifted._replace(ratio=Ratio(-0.4, -0.41, -0.39))
    found = judge(older, slower, [], exact=False)
    assert (found.outcome, found.evidence) == ("likely_slower", "ratios")
    assert found.ratio.log_ratio == pytest.approx(0.1)
    assert (found.ratio.low, found.ratio.high) == pytest.approx((0.1 - 0.0141, 0.1 + 0.0141), abs=1e-4)
    assert unpaired(older, slower._replace(baseline="other"))[1] == "values"


def beside(value, base, processes=QUIET):
    """A reading of a variant that took `value` where the baseline took `base`."""
    ratio = log(value / base)
    values = [value * each for each in processes]
    return reading(value, values, baseline="unfused", log_ratio=ratio, low=ratio - 0.01, high=ratio + 0.01)


@pytest.mark.parametrize("bigger", [False, True])
@pytest.mark.parametrize(
    ("before", "now", "outcome", "evidence"),
    [
        ((25, 100), (25, 138), None, "ratios"),  # the baseline became slower
        ((25, 100), (26, 138), None, "ratios"),
        ((25, 100), (25, 72), None, "ratios"),  # and faster: no variant is blamed for it
        ((25, 100), (20, 138), "likely_faster", "values"),  # both moved, each its own way
        ((25, 100), (34, 72), "likely_slower", "values"),
        ((25, 100), (34, 98), "likely_slower", "ratios"),
        ((25, 100), (50, 220), None, "ratios"),  # the variant did not go the way of its ratio
        ((25, 100), (14, 50), None, "ratios"),
        ((25, 240), (22, 100), None, "ratios"),
        ((25, 100), (50, 180), "likely_slower", "ratios"),  # a machine half as fast, where the variant takes more
        ((25, 100), (27.5, 100), "likely_slower", "ratios"),
        ((25, 100), (25.1, 101), None, "ratios"),
    ],
)
def test_a_ratio_that_its_baseline_moved_says_nothing_of_the_variant(before, now, outcome, evidence, bigger):
    found = judge(beside(*before), beside(*now), [], exact=False, bigger_is_better=bigger)
    turned = {"likely_faster": "likely_slower", "likely_slower": "likely_faster"}
    expected = turned.get(outcome, outcome) if bigger else outcome
    assert (found.outcome, found.evidence) == (expected or "ambiguous", evidence)
    if outcome is None and before[1] * now[0] != before[0] * now[1]:
        usual = found.threshold > abs(found.ratio.log_ratio)
        assert ("baseline moved" in found.reason) != usual


@pytest.mark.parametrize(
    ("processes", "factor", "outcome"),
    [(1, 1.39, "likely_slower"), (2, 1.39, "ambiguous"), (3, 1.39, "likely_slower"), (2, 2.0, "likely_slower")],
)
def test_two_processes_say_nothing_of_their_scatter_and_make_likely_what_is_unmistakable_alone(
    processes, factor, outcome
):
    older, newer = (reading(value, [value] * processes) for value in (100.0, 100.0 * factor))
    assert judge(older, newer, [], exact=False).outcome == outcome


def test_between_two_machines_every_baseline_moves_and_ratios_are_all_there_is():
    found = judge(beside(25, 100), beside(25, 138), [], exact=False, values_compare=False)
    assert (found.outcome, found.evidence) == ("likely_faster", "ratios")


@given(st.floats(0.5, 2), st.floats(0.5, 2), st.lists(st.floats(0.98, 1.02), min_size=3, max_size=5))
def test_no_variant_is_likely_another_that_took_as_long_as_before(base, drift, processes):
    """Within what values scatter, whatever the baseline did."""
    now = 25 * drift**0.1
    found = judge(beside(25, 100, processes), beside(now, 100 * base, processes), [], exact=False)
    if abs(log(base)) > abs(log(now / 25)):
        assert found.outcome == "ambiguous"


@given(st.floats(0.2, 5), st.floats(0.2, 5), st.lists(st.floats(0.9, 1.1), min_size=3, max_size=5))
def test_what_is_likely_of_a_variant_is_what_its_own_values_did(own, base, processes):
    """Whatever the baseline did: a ratio that says otherwise accuses the baseline."""
    found = judge(beside(25, 100, processes), beside(25 * own, 100 * base, processes), [], exact=False)
    if found.outcome != "ambiguous":
        assert (found.outcome == "likely_slower") == (own > 1)
    turned = judge(beside(25 * own, 100 * base, processes), beside(25, 100, processes), [], exact=False)
    assert (found.outcome == "ambiguous") == (turned.outcome == "ambiguous")


def test_a_ratio_without_values_says_not_which_of_the_two_moved():
    older, newer = beside(25, 100), beside(34, 100)
    nothing = judge(older._replace(value=0.0), newer, [], exact=False)
    assert (nothing.outcome, nothing.evidence, nothing.ratio.log_ratio) == ("ambiguous", "values", None)
    assert "zero or less" in nothing.reason
    assert judge(older._replace(value=0.0), newer, [], exact=False, values_compare=False).outcome == "likely_slower"


def test_nothing_is_likely_of_the_same_program():
    older, newer = reading(1.0, QUIET, program_hash="a"), reading(1.5, QUIET, program_hash="a")
    assert unpaired(older, newer) == ("ambiguous", "values")
    assert "same program" in judge(older, newer, [], exact=False).reason


@pytest.mark.parametrize("change", [0.08, -0.08])
def test_nothing_is_likely_that_the_noise_of_its_series_hides(change):
    outcome = "likely_slower" if change > 0 else "likely_faster"
    said = Judgement(outcome, "ratios", Ratio(change), 0.02, "Measured apart.", provisional=True)
    hidden = as_resolved(said, 0.1)
    assert (hidden.outcome, hidden.threshold, hidden.ratio) == ("ambiguous", 0.1, said.ratio)
    assert hidden.reason.endswith("; changes below 11 % are within the noise of this series.")
    assert as_resolved(said, 0.05) == said._replace(threshold=0.05)
    assert as_resolved(said, 0.001) == as_resolved(said, None) == said
    busy, same = said._replace(evidence="paired"), said._replace(outcome="ambiguous")
    assert (as_resolved(busy, 0.1), as_resolved(same, 0.1)) == (busy, same)
