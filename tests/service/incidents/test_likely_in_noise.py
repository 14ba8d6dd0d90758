"""The rate at which noise without a step is called likely: no reading that raised an alarm confirms it."""

import pytest
from benchmarks.detector_accuracy.noises import DEVELOPED_WITH, JUDGED_BY, correlated, series

from pullback_service.incidents.trunk_changes import LATER, TrunkReading, TrunkSeries, key_of, observe, suspicions_of
from pullback_service.regression import Watcher

SERIES = TrunkSeries(1, 1, 1, "fused", exact=False, bigger_is_better=False, is_watched=True)
NOISES = {**DEVELOPED_WITH, **JUDGED_BY}
SEED = 43
NEAR = 8
"""The places within which two looks mean one change."""


def lived(values):
    """The places of all suspicions for the worse in a growing series, and of those that were called likely."""
    watcher, readings = Watcher(), []
    suspected, likely = set(), set()
    for place, value in enumerate(values):
        readings.append(TrunkReading(place, value, None, None, None, ()))
        observe(watcher, readings[-1])
        if all(place - change.told_at > LATER + NEAR for change in watcher.changes):
            continue  # nothing is decided any more
        for change in (each.change for each in suspicions_of(SERIES, readings, {key_of(()): watcher})):
            if change.worse:
                at = next((other for other in suspected if abs(other - change.commit_id) <= NEAR), change.commit_id)
                suspected.add(at)
                if change.standing == "borne_out":
                    likely.add(at)
    return len(suspected), len(likely)


def counted(noise, numbers):
    found = [lived(series(noise, (SEED, number)).tolist()) for number in numbers]
    return sum(suspected for suspected, _ in found), sum(likely for _, likely in found)


def test_the_readings_that_raised_a_suspicion_do_not_make_it_likely():
    """The series among the first 40 that raise any; while these readings counted, each of the nine was called likely."""
    assert counted(correlated(0.85), (8, 11, 22, 24, 29, 31, 32)) == (9, 6)


@pytest.mark.long
@pytest.mark.parametrize("name", NOISES)
def test_noise_is_called_likely_less_than_once_in_ten_thousand_observations(name, capsys):
    suspected, likely = counted(NOISES[name], range(150))
    with capsys.disabled():
        print(f"\n{name}: of 22,500 observations {suspected} suspicions, {likely} likely")  # noqa: T201 - for docs/detection.md
    assert likely <= (4 if name == "sd ×3" else 2)  # the former misses the limit, as docs/detection.md says
