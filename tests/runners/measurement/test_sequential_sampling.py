"""How many groups there are and how long they may take, by a clock that only groups move."""

import os

import pytest

from pullback_runners.measurement import sequential_sampling
from pullback_runners.measurement.lockstep import Group, Timing
from pullback_runners.measurement.sequential_sampling import collect_groups
from pullback_runners.measurement.worker_process import WorkerSettings
from pullback_runners.suites import Suite

STANDARD = Suite("standard", groups=20, most_groups=40, slices=100, may_say_same=True)


class Sessions:
    """Groups that take as long as they are said to, and what was asked of them."""

    def __init__(self, monkeypatch, lengths_s):
        self.now = 1000.0
        self.lengths_s = lengths_s
        self.shares_s = []
        self.following = []
        self.alive = []
        self.rounds = 100
        self.lineups = self.ended = 0
        self.last = []
        monkeypatch.setattr(sequential_sampling.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(sequential_sampling, "GroupProcesses", self.lineup)
        monkeypatch.setattr(sequential_sampling, "run_group", self.run_group)

    def lineup(self, case, members, settings):
        self.lineups += 1
        return self

    def run_group(self, lineup, slices, most_s, deadline, start_following):
        self.alive.append(self.lineups - self.ended)
        self.following.append(start_following())
        self.shares_s.append(most_s)
        length_s = self.lengths_s(len(self.shares_s))
        if deadline is not None and self.now + length_s > deadline:
            length_s = deadline - self.now
            self.rounds = 7
        self.now += length_s
        self.ended += 1
        return Group({"a member": Timing(1, [1e-3] * self.rounds, [1e-3] * self.rounds, [0.0] * self.rounds)}, {})

    def end(self):
        self.ended += 1

    def collect(self, case, *, seconds=None, is_ambiguous=lambda: True, is_plain=lambda: False, passed_s=0.0, cpu=None):
        groups = []
        deadline = None if seconds is None else self.now + seconds
        self.now += passed_s
        collect_groups(
            groups,
            case,
            lambda: ["a member"],
            STANDARD,
            WorkerSettings(cpu=cpu),
            is_ambiguous=is_ambiguous,
            is_plain=is_plain,
            tell=lambda _number, _wanted: None,
            deadline=deadline,
            at_last=lambda: self.last.append(len(groups) + 1),
        )
        assert self.ended == self.lineups  # none is left running
        return len(groups), self.now - 1000.0


def test_without_a_deadline_there_are_more_while_the_answer_is_ambiguous(monkeypatch, sound_case):
    assert Sessions(monkeypatch, lambda _: 9.0).collect(sound_case)[0] == 40
    answers = iter([True, False])
    sessions = Sessions(monkeypatch, lambda _: 9.0)
    assert sessions.collect(sound_case, is_ambiguous=lambda: next(answers))[0] == 25
    assert set(sessions.shares_s) == {None}
    assert sessions.last == []  # nothing starts beside turns where there is no other CPU


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="no CPU can be chosen here"
)
def test_the_next_examination_may_start_beside_the_last_group_and_again_beside_the_last_of_more(
    monkeypatch, sound_case
):
    answers = iter([True, False])
    sessions = Sessions(monkeypatch, lambda _: 9.0)
    sessions.collect(sound_case, is_ambiguous=lambda: next(answers), cpu=max(os.sched_getaffinity(0)))
    assert sessions.last == [20, 25]


@pytest.mark.parametrize(("length_s", "passed_s", "groups"), [(1.0, 0, 40), (2.0, 0, 30), (5.0, 0, 12), (5.0, 11, 9)])
def test_no_group_begins_that_would_end_after_the_deadline(monkeypatch, sound_case, length_s, passed_s, groups):
    found, took_s = Sessions(monkeypatch, lambda _: length_s).collect(sound_case, seconds=60, passed_s=passed_s)
    assert found == groups
    assert took_s <= 60


def test_the_longest_of_the_last_three_says_how_long_the_next_one_may_take(monkeypatch, sound_case):
    found, took_s = Sessions(monkeypatch, lambda n: 9.0 if n % 3 == 0 else 3.0).collect(sound_case, seconds=59)
    assert (found, took_s) == (11, 51.0)


def test_a_group_that_takes_longer_than_foreseen_ends_with_the_minute_and_is_left_out(monkeypatch, sound_case):
    sessions = Sessions(monkeypatch, lambda n: 5.0 if n < 12 else 30.0)
    found, took_s = sessions.collect(sound_case, seconds=60)
    assert (found, took_s) == (11, 60.0)
    assert len(sessions.shares_s) == 12


def test_two_groups_there_are_however_long_they_take(monkeypatch, sound_case):
    assert Sessions(monkeypatch, lambda _: 500.0).collect(sound_case, seconds=60)[0] == 2


def test_each_group_has_its_share_of_the_time_that_is_left(monkeypatch, sound_case):
    sessions = Sessions(monkeypatch, lambda _: 2.0)
    sessions.collect(sound_case, seconds=60, passed_s=10)
    assert set(sessions.shares_s) == {2.5}


def test_a_plain_answer_is_looked_for_from_twelve_groups_on_and_ends_the_session(monkeypatch, sound_case):
    asked = []

    def is_plain():
        asked.append(len(asked))
        return len(asked) == 3

    assert Sessions(monkeypatch, lambda _: 1.0).collect(sound_case, is_plain=is_plain)[0] == 16
    assert Sessions(monkeypatch, lambda _: 1.0).collect(sound_case, is_ambiguous=lambda: False)[0] == 20


def test_turns_are_taken_while_the_next_group_starts_on_other_cpus(monkeypatch, sound_case):
    cpus = os.sched_getaffinity(0)
    sessions = Sessions(monkeypatch, lambda _: 1.0)
    sessions.collect(sound_case, is_ambiguous=lambda: False, cpu=max(cpus))
    assert sessions.following == [sessions if len(cpus) > 1 else None] * 19 + [None]
    assert sessions.alive == [1] * 20  # none starts beside one whose turns have not begun
    sessions = Sessions(monkeypatch, lambda _: 1.0)
    sessions.collect(sound_case, is_ambiguous=lambda: False)
    assert sessions.following == [None] * 20  # nobody is kept off the CPU of the turns
