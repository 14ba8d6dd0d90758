"""Real noise: nightly times of GradBench's tools, in stretches of days in which the commit stayed the same.

No commit can be guilty of what happens in such a stretch. Its days are taken for commits; then an alarm is false, and a step
that is planted is known.
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
from benchmarks.detector_accuracy.measuring import NEAR, PULLBACK, TOLD, lived, places
from benchmarks.detector_accuracy.noises import Values, stepped

from pullback_service.regression import find_changes

LONGEST: Final = 3
"""Commits that stayed longest, whose days are looked at."""
PLANTED: Final = (1.05, 1.1, 1.2)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The times of one series on the days of one commit."""

    number: int
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
        Stretch(number, np.array([seconds for _, seconds in sorted(times[key])]))
        for number, key in enumerate(sorted(times))
        if len(times[key]) >= 10
    ]


@dataclass(frozen=True, slots=True)
class Seen:
    """One stretch as one rule sees it."""

    points: int
    noise: float
    alarms: int
    lived: int
    blamed: int
    """Changes that are said of a commit where all days are told to be reports of one commit."""
    found: tuple[bool, ...]
    """Of each planted step, whether it was found within three days."""
    delays: tuple[float, ...]


def look(rule: str, stretches: Sequence[Stretch]) -> list[Seen]:
    """Some stretches as a rule sees them."""
    return [_look(rule, stretch) for stretch in stretches]


def _look(rule: str, stretch: Stretch) -> Seen:
    values, at = stretch.values, stretch.planted_at
    alarms, told, blamed = len(places(rule, values)), 0, 0
    found, delays = [], []
    if rule == PULLBACK:
        told = len(lived(values.tolist())[0])
        blamed = sum(c.kind in TOLD for c in find_changes(values.tolist(), commits=["one"] * len(values)))
    for factor in PLANTED:
        planted = stepped(values, factor, at)
        found.append(any(abs(place - at) <= NEAR for place in places(rule, planted)))
        if rule == PULLBACK:
            late = [i - at + 1 for i, _ in lived(planted.tolist())[0] if i >= at]
            delays.append(float(late[0]) if late else float("inf"))
    return Seen(len(values), stretch.noise, alarms, told, blamed, tuple(found), tuple(delays))


def look_at_all(rules: Sequence[str], stretches: Sequence[Stretch], pool: Executor) -> dict[str, list[Seen]]:
    """All stretches as each rule sees them."""
    parts = {
        rule: [pool.submit(look, rule, stretches[i : i + 50]) for i in range(0, len(stretches), 50)] for rule in rules
    }
    return {rule: [seen for part in of_rule for seen in part.result()] for rule, of_rule in parts.items()}
