"""When a comparison ends, by sessions whose noise is drawn with seeds: nothing is measured."""

import numpy as np
import pytest

from pullback_runners.measurement import sequential_sampling, statistics
from pullback_runners.measurement.comparison import CANDIDATE, REFERENCE, TWIN, Comparison
from pullback_runners.measurement.lockstep import Group, Timing
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.outcomes import noisy_outcome
from pullback_runners.measurement.sequential_sampling import collect_groups
from pullback_runners.measurement.worker_process import WorkerSettings
from pullback_runners.suites import find_suite

STANDARD = find_suite("standard")
SESSIONS = 100


class Drawn:
    """Groups of three processes, each of which is faster or slower than it should be by a number from `noise`."""

    def __init__(self, case, true, noise):
        self.comparison = Comparison(
            case, Member("right", role=REFERENCE), Member("right", role=CANDIDATE), with_twin=True
        )
        self.true, self.noise = true, noise

    def run_group(self, *_):
        by_name = {REFERENCE: 0.0, TWIN: 0.0, CANDIDATE: self.true}
        took_s = {name: [1e-3 * np.exp(true + self.noise())] for name, true in by_name.items()}
        return Group({name: Timing(1, slices, slices, [0.0]) for name, slices in took_s.items()}, {})

    def answer(self, monkeypatch):
        compared = self.comparison
        monkeypatch.setattr(sequential_sampling, "GroupProcesses", lambda *_: self)
        monkeypatch.setattr(sequential_sampling, "run_group", self.run_group)
        collect_groups(
            compared.groups,
            compared.case,
            compared.members,
            STANDARD,
            WorkerSettings(),
            is_ambiguous=lambda: compared.is_ambiguous(may_say_same=True),
            is_plain=lambda: compared.is_plain(may_say_same=True),
            tell=lambda _number, _wanted: None,
        )
        return noisy_outcome(compared.estimate(), compared.margins(), may_say_same=True), len(compared.groups)

    def end(self):
        """No processes to end."""


def sessions(monkeypatch, case, true, draw, number=SESSIONS // 4):
    monkeypatch.setattr(statistics, "RESAMPLES", 300)
    rng = np.random.default_rng(20)
    answers = [Drawn(case, true, lambda: draw(rng)).answer(monkeypatch) for _ in range(number)]
    outcomes, groups = zip(*answers, strict=True)
    return outcomes, groups


NOISES = {
    "normal": lambda rng: 0.02 * rng.standard_normal(),
    "heavy tails": lambda rng: 0.02 * rng.standard_t(3),
}


@pytest.mark.long
@pytest.mark.parametrize("noise", NOISES)
def test_equal_programs_are_called_different_once_in_twenty_sessions_at_most(monkeypatch, sound_case, noise):
    outcomes, _ = sessions(monkeypatch, sound_case, 0.0, NOISES[noise], SESSIONS)
    assert sum(outcome in {"slower", "faster"} for outcome in outcomes) <= SESSIONS / 20


def test_a_plain_difference_ends_a_comparison_with_as_few_groups_as_its_floor_needs(monkeypatch, sound_case):
    outcomes, groups = sessions(monkeypatch, sound_case, 0.3, NOISES["normal"])
    assert set(outcomes) == {"slower"}
    assert np.median(groups) == 12


def test_a_difference_beside_noise_of_its_size_is_found_with_more_groups(monkeypatch, sound_case):
    outcomes, groups = sessions(monkeypatch, sound_case, 0.02, NOISES["normal"])
    assert sum(outcome == "slower" for outcome in outcomes) >= 0.85 * len(outcomes)
    assert max(groups) > 20


def test_programs_that_are_equal_beside_little_noise_are_the_same_after_a_dozen_groups(monkeypatch, sound_case):
    outcomes, groups = sessions(monkeypatch, sound_case, 0.0, lambda rng: 0.002 * rng.standard_normal())
    assert set(outcomes) == {"same"}
    assert np.median(groups) == 12
