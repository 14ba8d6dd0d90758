"""Twenty series of each kind, whose counts must not become worse."""

from concurrent.futures import ProcessPoolExecutor

from benchmarks.detector_accuracy.alarm_counts import PULLBACK, STORIES, Cell, count_all, share
from benchmarks.detector_accuracy.noises import DEVELOPED_WITH
from benchmarks.detector_accuracy.tables import LOCATED, STEPS

SEED = 1
SERIES = 20
MOST_ALARMS = 6
"""False alarms of one kind of noise in 3,000 observations. Where the scatter triples, online, there are more."""
FEWEST_FOUND = {"iid": (10, 18, 20), "AR(1) .5": (3, 14, 19), "t3": (10, 18, 20)}
FEWEST_TOLD = {
    "ratios": 19,
    "fixed offline": 19,
    "fixed online": 19,
    "drift offline": 17,
    "drift online": 17,
    "steep offline": 19,
    "steep online": 18,
}
ALWAYS = ("counts", "back and forth")


def check() -> list[str]:
    """Counts that miss their limits, a sentence each."""
    missed = []
    none = [Cell(PULLBACK, noise, 0.0, online, SEED) for noise in DEVELOPED_WITH for online in (False, True)]
    some = [Cell(PULLBACK, noise, step, False, SEED) for noise in LOCATED for step in STEPS]
    soon = [Cell(PULLBACK, "iid", step, True, SEED) for step in (0.02, 0.05)]
    with ProcessPoolExecutor() as pool:
        counted = count_all([*none, *some, *soon], {PULLBACK: SERIES}, pool)
    for cell in none:
        most = MOST_ALARMS * (3 if cell.noise == "sd ×3" and cell.lived else 1)
        if counted[cell].alarms > most:
            missed.append(f"{counted[cell].alarms} false alarms in {SERIES} series of {cell.noise}; at most {most}")
    for cell in some:
        fewest = FEWEST_FOUND[cell.noise][STEPS.index(cell.step)]
        if counted[cell].found < fewest:
            missed.append(
                f"+{cell.step:.0%} in {cell.noise} found in {counted[cell].found} of {SERIES}; at least {fewest}"
            )
    for cell, most in zip(soon, (9, 2), strict=True):
        if counted[cell].delay(0.5) > most:
            missed.append(f"+{cell.step:.0%} is told after {counted[cell].delay(0.5):.0f} observations; at most {most}")
    for name in STORIES:
        told, fewest = share(name, SEED, range(SERIES)), FEWEST_TOLD.get(name, SERIES if name in ALWAYS else 0)
        if told < fewest:
            missed.append(f"{name}: as it should be in {told} of {SERIES} series; at least {fewest}")
    return missed
