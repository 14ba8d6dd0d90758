"""A comparison's minute, by a clock that only the examination moves."""

from pullback_runners.measurement import comparison
from pullback_runners.measurement.comparison import CANDIDATE, REFERENCE, Comparison, compare_members
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.worker_process import Surroundings
from pullback_runners.suites import find_suite


def test_checking_and_counting_are_part_of_the_minute(monkeypatch, sound_case):
    now = [1000.0]
    asked = {}

    def examine(case, members, surroundings):
        now[0] += 12.0
        return {}, {}

    monkeypatch.setattr(comparison.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(comparison, "examine", examine)
    monkeypatch.setattr(comparison, "collect_groups", lambda *_args, **options: asked.update(options))
    compared = Comparison(sound_case, Member("right", role=REFERENCE), Member("right", role=CANDIDATE), with_twin=True)
    compare_members(compared, find_suite("standard"), Surroundings(), lambda _number, _wanted: None)
    assert asked["deadline"] - now[0] == 48.0
