"""Nightly times taken as they are: a day is a report of the commit that was built on it, and a commit has one reading.

Some commits stay for weeks. What moves between their reports is the machine's; how often is such a commit accused, or the one behind it?
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from pullback_service.incidents.trunk_changes import (
    SuspectedChange,
    TrunkReading,
    TrunkSeries,
    shown_by_reports,
    suspicions_of,
)

STAYED: Final = 3
"""The commits with the most reports, of which accusations are counted."""
FEWEST: Final = 6
"""Commits of a series of which anything can be said."""
_SERIES: Final = TrunkSeries(1, 1, 1, "", exact=False, bigger_is_better=False, is_watched=True)


class Accusations(NamedTuple):
    """Suspicions whose range has a commit that stayed, and those whose range begins behind one."""

    suspicions: int
    accused: int
    behind: int


def accusations(folder: Path) -> tuple[int, Accusations, Accusations]:
    """The series, and what readings alone accuse, and what reports show too."""
    with (folder / "commits.csv").open(newline="") as file:
        days = [(row["commit"], row["date"]) for row in csv.DictReader(file) if row["commit"]]
    stays = [[date for _, date in days] for _, days in groupby(days, key=lambda day: day[0])]
    commit_of = {date: number for number, dates in enumerate(stays) for date in dates}
    stayed = sorted(range(len(stays)), key=lambda number: -len(stays[number]))[:STAYED]
    values: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(folder / "series.csv.gz", "rt", newline="") as file:
        for row in sorted(csv.DictReader(file), key=lambda row: row["date"]):
            if row["date"] in commit_of and float(row["seconds"]) > 0:
                key = (row["eval"], row["tool"], row["workload"], row["part"])
                values[key][commit_of[row["date"]]].append(float(row["seconds"]))
    places = {number: number for number in range(len(stays))}
    by_readings: list[SuspectedChange] = []
    by_reports: list[SuspectedChange] = []
    series = [of_one for of_one in values.values() if len(of_one) >= FEWEST]
    for of_one in series:
        readings = [
            TrunkReading(commit, median(each), None, None, None, (), reports=len(each))
            for commit, each in of_one.items()
        ]
        reports = [
            TrunkReading(commit, value, None, None, None, ()) for commit, each in of_one.items() for value in each
        ]
        suspicions = suspicions_of(_SERIES, readings)
        by_readings += suspicions
        by_reports += shown_by_reports(_SERIES, suspicions, reports, places)
    return len(series), _counted(by_readings, stayed), _counted(by_reports, stayed)


def _counted(suspicions: Iterable[SuspectedChange], stayed: Sequence[int]) -> Accusations:
    ranges = [(one.change.reference_id, one.change.commit_id) for one in suspicions]
    accused = [any(first < commit <= last for commit in stayed) for first, last in ranges]
    behind = [first in stayed and not is_accused for (first, _), is_accused in zip(ranges, accused, strict=True)]
    return Accusations(len(ranges), sum(accused), sum(behind))
