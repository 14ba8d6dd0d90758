"""Real noise: nightly times of GradBench's tools, in stretches of days in which the commit stayed the same.

No commit can be guilty of what happens in such a stretch. Its days are taken for commits; then an alarm is false, and a step
that is planted is known. On some days the machine itself became another one: many series moved at once and stayed there.
Alarms within three places of these days are counted apart, for every rule.
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np
from benchmarks.detector_accuracy.alarm_counts import NEAR, PULLBACK, TOLD, lived, places
from benchmarks.detector_accuracy.noises import Values, stepped

from pullback_service.regression import find_changes

LONGEST: Final = 3
"""Commits that stayed longest, whose days are looked at."""
SOME_DAYS: Final = 8
PLANTED: Final = (1.05, 1.1, 1.2)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The times of one series on the days of one commit."""

    number: int
    stay: int
    """Which commit."""
    days: tuple[str, ...]
    values: Values

    @property
    def noise(self) -> float:
        """Robust standard deviation of the natural logs."""
        logs = np.log(self.values)
        return float(np.median(abs(logs - np.median(logs)))) * 1.4826

    @property
    def planted_at(self) -> int:
        """The day from which a step is planted: from a third to two thirds of the stretch."""
        n = len(self.values)
        return int(np.random.default_rng(self.number).integers(n // 3, 2 * n // 3 + 1))


def read(folder: Path) -> list[Stretch]:
    """The stretches of the commits that stayed longest, of all series with a time on at least ten of the days."""
    with (folder / "commits.csv").open(newline="") as file:
        days = [(row["commit"], row["date"]) for row in csv.DictReader(file) if row["commit"]]
    stays = sorted(([date for _, date in days] for _, days in groupby(days, key=lambda day: day[0])), key=len)[
        -LONGEST:
    ]
    commit_of = {date: number for number, dates in enumerate(stays) for date in dates}
    times: dict[tuple[str, ...], list[tuple[str, float]]] = defaultdict(list)
    with gzip.open(folder / "series.csv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file):
            if row["date"] in commit_of and float(row["seconds"]) > 0:
                key = (row["eval"], row["tool"], row["workload"], row["part"], str(commit_of[row["date"]]))
                times[key].append((row["date"], float(row["seconds"])))
    return [
        Stretch(
            number,
            int(key[-1]),
            tuple(day for day, _ in sorted(times[key])),
            np.array([seconds for _, seconds in sorted(times[key])]),
        )
        for number, key in enumerate(sorted(times))
        if len(times[key]) >= 10
    ]


def shifts(stretches: Sequence[Stretch]) -> set[tuple[int, str]]:
    """Days on which the machine changed: an eighth of all series of a commit lie elsewhere in the next days than in those before."""
    moved: dict[tuple[int, str], list[bool]] = defaultdict(list)
    for stretch in stretches:
        logs = np.log(stretch.values)
        for i in range(SOME_DAYS, len(logs) - SOME_DAYS + 1):
            before, after = logs[i - SOME_DAYS : i], logs[i : i + SOME_DAYS]
            spread = max(float(np.median(abs(before - np.median(before)))) * 1.4826, 0.002)
            moved[stretch.stay, stretch.days[i]].append(abs(float(np.median(after) - np.median(before))) > 6 * spread)
    return {day for day, all_moved in moved.items() if float(np.mean(all_moved)) > 1 / 8}


@dataclass(frozen=True, slots=True)
class StretchResult:
    """One stretch as one rule sees it."""

    points: int
    noise: float
    alarms: int
    lived: int
    """Alarms away from days on which the machine changed, offline and online."""
    shifted: int
    """Alarms offline beside such days."""
    blamed: int
    """Changes that are said of a commit where all days are told to be reports of one commit."""
    found: tuple[bool, ...]
    """Of each planted step, whether it was found within three days."""
    delays: tuple[float, ...]


def look(rule: str, stretches: Sequence[Stretch], machine: set[tuple[int, str]]) -> list[StretchResult]:
    """Some stretches as a rule sees them."""
    return [_look(rule, stretch, machine) for stretch in stretches]


def _look(rule: str, stretch: Stretch, machine: set[tuple[int, str]]) -> StretchResult:
    values, at = stretch.values, stretch.planted_at
    days = [i for i, day in enumerate(stretch.days) if (stretch.stay, day) in machine]
    alarms = places(rule, values)
    away = [place for place in alarms if all(abs(place - day) > NEAR for day in days)]
    told = blamed = 0
    found, delays = [], []
    if rule == PULLBACK:
        told = sum(all(abs(change.at - day) > NEAR for day in days) for _, change in lived(values.tolist())[0])
        blamed = sum(c.kind in TOLD for c in find_changes(values.tolist(), commits=["one"] * len(values)))
    for factor in PLANTED:
        planted = stepped(values, factor, at)
        found.append(any(abs(place - at) <= NEAR for place in places(rule, planted)))
        if rule == PULLBACK:
            late = [i - at + 1 for i, _ in lived(planted.tolist())[0] if i >= at]
            delays.append(float(late[0]) if late else float("inf"))
    return StretchResult(
        len(values), stretch.noise, len(away), told, len(alarms) - len(away), blamed, tuple(found), tuple(delays)
    )


def look_at_all(
    rules: Sequence[str], stretches: Sequence[Stretch], machine: set[tuple[int, str]], pool: Executor
) -> dict[str, list[StretchResult]]:
    """Stretches as each rule sees them, in parts that several processes share."""
    parts = {
        rule: [pool.submit(look, rule, stretches[i : i + 50], machine) for i in range(0, len(stretches), 50)]
        for rule in rules
    }
    return {rule: [seen for part in of_rule for seen in part.result()] for rule, of_rule in parts.items()}
