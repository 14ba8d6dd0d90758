"""Counts for one series: false alarms, steps found, and their delay."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

import numpy as np
from benchmarks.detector_accuracy.noises import DEVELOPED_WITH, JUDGED_BY, Values, series, stepped
from benchmarks.detector_accuracy.rivals import RIVALS

from pullback_service.regression import Change, Watcher, find_changes

ALL_NOISES: Final = {**DEVELOPED_WITH, **JUDGED_BY}
STEP: Final = 100
NEAR: Final = 3
PULLBACK: Final = "Pullback"
TOLD: Final = ("step", "drift", "return")
"""Kinds that are counted. A spike or more scatter is no change of level, and is told to nobody."""


def places(rule: str, values: Values) -> list[int]:
    """Where a rule says that a series, searched as a whole, changed."""
    if rule == PULLBACK:
        return [change.at for change in find_changes(values.tolist()) if change.kind in TOLD]
    return RIVALS[rule](values)


def lived(values: Sequence[float]) -> tuple[list[tuple[int, Change]], Watcher]:
    """Changes reported for a growing series, each with the observation after which it was reported."""
    watcher = Watcher()
    told = [(i, change) for i, value in enumerate(values) for change in watcher.observe(value)]
    return [(i, change) for i, change in told if change.kind in TOLD], watcher


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: series of one kind, with one step or none, seen by one rule in one way."""

    rule: str
    noise: str
    step: float
    lived: bool
    seed: int

    def values(self, number: int) -> Values:
        """One of the series."""
        kind = list(ALL_NOISES).index(self.noise)
        made = series(ALL_NOISES[self.noise], (self.seed, kind, round(self.step * 1000), number))
        return stepped(made, 1 + self.step, STEP) if self.step else made


@dataclass(frozen=True, slots=True)
class AlarmCounts:
    """Counts over several series."""

    series: int
    alarms: int
    """All of them, before the step and behind it."""
    found: int
    """Series with an alarm within three places of the step."""
    further: int
    """Alarms beyond one for each series."""
    delays: tuple[int, ...] = ()
    """Online: observations behind the step until it was told; one for each series in which it was."""

    @property
    def per_thousand(self) -> float:
        """Alarms for each thousand observations."""
        return 1000 * self.alarms / (self.series * 150)

    @property
    def recall(self) -> float:
        """Share of the series whose step was found."""
        return self.found / self.series

    def delay(self, share: float) -> float:
        """Observations after which the step was told in a share of all series; infinite where it never was in so many."""
        ordered = sorted([*self.delays, *[float("inf")] * (self.series - len(self.delays))])
        return ordered[min(int(share * self.series), self.series - 1)]


def count(cell: Cell, numbers: Iterable[int]) -> AlarmCounts:
    """Look at some series of a cell."""
    done = alarms = found = further = 0
    delays = []
    for number in numbers:
        values = cell.values(number)
        if cell.lived:
            told, _ = lived(values.tolist())
            at = [change.at for _, change in told]
            late = [i - STEP + 1 for i, _ in told if i >= STEP]
            delays.extend(late[:1])
        else:
            at = places(cell.rule, values)
        done += 1
        alarms += len(at)
        found += any(abs(place - STEP) <= NEAR for place in at)
        further += max(len(at) - 1, 0)
    return AlarmCounts(done, alarms, found, further, tuple(delays))


def ratios_offline(seed: int, number: int) -> bool:
    """A step of 1 % in ratios of a standard run, with their intervals, is found within three places."""
    rng = np.random.default_rng((seed, 1001, number))
    logs = -0.3 + 0.0035 * rng.normal(size=150)
    half = 1.96 * 0.0035 * rng.uniform(0.7, 1.4, size=150)
    logs[STEP:] += np.log(1.01)
    changes = find_changes(np.exp(logs).tolist(), low=np.exp(logs - half).tolist(), high=np.exp(logs + half).tolist())
    return any(abs(change.at - STEP) <= NEAR for change in changes if change.kind in TOLD)


def regress_and_fix_offline(seed: int, number: int) -> bool:
    """+20 % for ten commits: both ends within three places, as one event."""
    values = stepped(series(DEVELOPED_WITH["iid"], (seed, 1002, number)), 1.2, STEP, STEP + 10)
    return _is_one_event([change for change in find_changes(values.tolist()) if change.kind in TOLD])


def regress_and_fix_online(seed: int, number: int) -> bool:
    """The same, looked at after every observation."""
    values = stepped(series(DEVELOPED_WITH["iid"], (seed, 1002, number)), 1.2, STEP, STEP + 10)
    return _is_one_event([change for _, change in lived(values.tolist())[0]])


def _is_one_event(changes: Sequence[Change]) -> bool:
    kinds = [change.kind for change in changes]
    ends = (STEP, STEP + 10)
    return kinds == ["step", "return"] and all(abs(c.at - end) <= NEAR for c, end in zip(changes, ends, strict=True))


def _drifting(seed: int, number: int) -> Values:
    values = series(DEVELOPED_WITH["iid"], (seed, 1003, number))
    return np.asarray(values * np.exp(np.clip(np.arange(150) - 50, 0, 50) / 50 * np.log(1.1)))


def drift_offline(seed: int, number: int) -> bool:
    """+10 % over 50 commits is one change."""
    return len([change for change in find_changes(_drifting(seed, number).tolist()) if change.kind in TOLD]) == 1


def drift_online(seed: int, number: int) -> bool:
    """The same, looked at after every observation: one message, and a drift in the end."""
    told, watcher = lived(_drifting(seed, number).tolist())
    return len(told) == 1 and watcher.changes[-1].kind == "drift"


def drift_told_again(seed: int, number: int) -> bool:
    """The drift was reported more than once."""
    return len(lived(_drifting(seed, number).tolist())[0]) > 1


def _steep(seed: int, number: int) -> Values:
    """Twenty observations, then a slope of 10, 20, 50 or 100 standard deviations over thirty, then ten more."""
    values = series(DEVELOPED_WITH["iid"], (seed, 1006, number))[:60]
    size = 0.01 * (10, 20, 50, 100)[number % 4]
    return np.asarray(values * np.exp(np.clip(np.arange(60) - 20, 0, 30) / 30 * size))


def steep_offline(seed: int, number: int) -> bool:
    """A steep slope behind few observations is one drift."""
    return [change.kind for change in find_changes(_steep(seed, number).tolist()) if change.kind in TOLD] == ["drift"]


def steep_online(seed: int, number: int) -> bool:
    """The same, looked at after every observation: one message before the slope has ended."""
    values = _steep(seed, number).tolist()
    watcher = Watcher()
    told = [place for place, value in enumerate(values) for _ in watcher.observe(value)]
    return len(told) == 1 and 20 <= told[0] < 50


def counts_online(seed: int, number: int) -> bool:
    """Each change of a count is told with the observation that brought it, and nothing else is."""
    rng = np.random.default_rng((seed, 1004, number))
    at = np.sort(rng.choice(np.arange(1, 150), size=3, replace=False))
    values = 1000 + np.searchsorted(at, np.arange(150), side="right") * int(rng.integers(1, 5))
    watcher = Watcher(exact=True)
    told = [(i, c.first, c.last) for i, value in enumerate(values.tolist()) for c in watcher.observe(value)]
    once = [(c.first, c.last) for c in find_changes(values.tolist(), exact=True)]
    return told == [(i, i, i) for i in at.tolist()] and once == [(i, i) for i in at.tolist()]


def count_back_and_forth(seed: int, number: int) -> bool:
    """A count that goes back and forth is one change offline, and one event online."""
    rng = np.random.default_rng((seed, 1005, number))
    values = (1000 + np.where(np.arange(150) >= 50, rng.integers(0, 2, size=150), 0)).tolist()
    watcher = Watcher(exact=True)
    told = [c for value in values for c in watcher.observe(value) if c.kind != "return"]
    return len(told) == 1 and [c.kind for c in find_changes(values, exact=True)] == ["unsteady"]


STORIES: Final[dict[str, Callable[[int, int], bool]]] = {
    "ratios": ratios_offline,
    "fixed offline": regress_and_fix_offline,
    "fixed online": regress_and_fix_online,
    "drift offline": drift_offline,
    "drift online": drift_online,
    "drift again": drift_told_again,
    "steep offline": steep_offline,
    "steep online": steep_online,
    "counts": counts_online,
    "back and forth": count_back_and_forth,
}


def share(name: str, seed: int, numbers: Iterable[int]) -> int:
    """Number of series in which a story was reported as required."""
    return sum(STORIES[name](seed, number) for number in numbers)


def count_all(cells: Sequence[Cell], series_each: dict[str, int], pool: Executor) -> dict[Cell, AlarmCounts]:
    """All cells, in parts that several processes share."""
    parts = [
        (cell, pool.submit(count, cell, range(begin, min(begin + 50, series_each[cell.rule]))))
        for cell in cells
        for begin in range(0, series_each[cell.rule], 50)
    ]
    counted: dict[Cell, AlarmCounts] = {}
    for cell, part in parts:
        new, old = part.result(), counted.get(cell, AlarmCounts(0, 0, 0, 0))
        counted[cell] = AlarmCounts(
            old.series + new.series,
            old.alarms + new.alarms,
            old.found + new.found,
            old.further + new.further,
            old.delays + new.delays,
        )
    return counted
