"""Who takes part in a comparison, and its minute, by a clock that only the examination moves."""

from math import log
from pathlib import Path

import pytest

from pullback_runners.errors import VariantError
from pullback_runners.measurement import comparison
from pullback_runners.measurement.comparison import (
    CANDIDATE,
    CANDIDATE_TWIN,
    REFERENCE,
    TWIN,
    Comparison,
    compare_members,
)
from pullback_runners.measurement.examination import Examination
from pullback_runners.measurement.lockstep import Group, Timing
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.subject import Subject
from pullback_runners.measurement.worker_process import WorkerSettings
from pullback_runners.report.comparisons import comparison_rows
from pullback_runners.suites import find_suite


def examined(members, **counts):
    """Examinations of members, with one count of each that is named."""
    known = {name: {"array_bytes": {"value": count}} for name, count in counts.items()}
    return {each.name: Examination({}, known.get(each.name, {}), None) for each in members}


@pytest.mark.parametrize(
    ("candidate", "recounts", "is_claimed"),
    [([2, 2, 2, 2], 3, True), ([2, 1], 1, False), ([2, 2, 1], 2, False), ([1], 0, False)],
)
def test_a_count_is_claimed_to_differ_when_all_of_four_processes_of_each_say_so(
    monkeypatch, sound_case, candidate, recounts, is_claimed
):
    drawn = iter(candidate)

    def examine(case, members, settings):
        return examined(members, reference=1, candidate=next(drawn)), {}

    monkeypatch.setattr(comparison, "examine", examine)
    monkeypatch.setattr(comparison, "collect_groups", lambda *_args, **_options: None)
    compared = Comparison(sound_case, Member("right", role=REFERENCE), Member("right", role=CANDIDATE), with_twin=False)
    compare_members(compared, find_suite("quick"), WorkerSettings(), lambda _number, _wanted: None)
    assert (len(compared.recounts), compared.counts_are_apart()) == (recounts, is_claimed)
    (row,) = comparison_rows(compared, may_say_same=False, is_busy=False)
    assert row["outcome"] == ("more" if is_claimed else "equal" if candidate == [1] else "ambiguous")
    assert row["values"] == [1, candidate[0]]


def test_checking_and_counting_are_part_of_the_minute(monkeypatch, sound_case):
    now = [1000.0]
    asked = {}

    def examine(case, members, settings):
        now[0] += 12.0
        return examined(members), {}

    monkeypatch.setattr(comparison.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(comparison, "examine", examine)
    monkeypatch.setattr(comparison, "collect_groups", lambda *_args, **options: asked.update(options))
    compared = Comparison(sound_case, Member("right", role=REFERENCE), Member("right", role=CANDIDATE), with_twin=True)
    compare_members(compared, find_suite("standard"), WorkerSettings(), lambda _number, _wanted: None)
    assert asked["deadline"] - now[0] == 48.0


def between(case, *pythons, with_twin=True):
    """A comparison of two subjects that run on these interpreters."""
    subjects = [Subject(python=python) for python in pythons]
    members = (Member("right", subject, role) for subject, role in zip(subjects, (REFERENCE, CANDIDATE), strict=True))
    return Comparison(case, *members, with_twin=with_twin)


def timing(seconds):
    """Twenty slices of a call that takes so long, by the clock that decides."""
    return Timing(calls=1, cpu_s=[seconds] * 20, wall_s=[seconds] * 20, waited_s=[0.0] * 20)


def test_of_two_interpreters_each_has_twins_and_of_one_the_reference_alone(sound_case):
    here, there = Path("/a/python"), Path("/b/python")
    assert [each.name for each in between(sound_case, here, here).members()] == [REFERENCE, CANDIDATE, TWIN]
    compared = between(sound_case, here, there)
    assert [each.name for each in compared.members()] == [REFERENCE, CANDIDATE, TWIN, CANDIDATE_TWIN]
    assert [each.subject.python for each in compared.members()] == [here, there, here, there]
    assert len(between(sound_case, here, there, with_twin=False).members()) == 2
    compared.failures[CANDIDATE_TWIN] = VariantError("crash", "it ended")
    assert [each.name for each in compared.members()] == [
        REFERENCE,
        CANDIDATE,
    ]  # or one would have two to be compared with
    assert compared.failure() is None


def test_the_ratio_of_a_group_is_the_mean_of_both_candidates_against_both_references(sound_case):
    compared = between(sound_case, Path("/a/python"), Path("/b/python"))
    seconds = {REFERENCE: 1.0, TWIN: 1.1, CANDIDATE: 1.2, CANDIDATE_TWIN: 1.3}
    compared.groups.append(Group({name: timing(each) for name, each in seconds.items()}, {}))
    assert compared.log_ratios() == pytest.approx([(log(1.2) + log(1.3) - log(1.0) - log(1.1)) / 2])
    assert compared.twin_log_ratios() == pytest.approx([log(1.1)])
    del compared.groups[0].timings[CANDIDATE_TWIN]
    assert compared.log_ratios() == pytest.approx([log(1.2)])
