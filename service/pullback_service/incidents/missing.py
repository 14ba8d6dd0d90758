"""The commit since which a variant of a case is missing, although its suite still reports from its machine. Pure: reports in, changes out.

Reports of one machine, one device and one suite are alike: a part of a suite is another suite. A failure is not an absence: it has its own incident.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from pullback_service.incidents.changes import Change, Places

ABSENT: Final = 3
"""The number of commits in a row without it after which it is missing."""
PRESENT: Final = 2
"""The number of commits in a row that must have had it before."""

Suite: TypeAlias = tuple[int, str]
"""A machine, and a suite or the format of another tool with its device: reports of one such pair measure the same."""


class TrackedVariant(NamedTuple):
    """A variant of a case on a machine: commits of the trunk at which it was measured, each with its suite, and at which it failed."""

    case_id: int
    machine_id: int
    variant: str
    measured: Mapping[int, str]
    failed: Collection[int] = frozenset()


def missing_of(
    tracked: Iterable[TrackedVariant], reported: Mapping[Suite, Collection[int]], places: Places
) -> list[Change]:
    """The stretches of commits whose reports lack what earlier reports of their suite had, each after the last that had it.

    `reported` are the commits of the trunk with reports of each suite.
    """
    return [change for each in tracked for change in _missing(each, reported, places)]


def _missing(each: TrackedVariant, reported: Mapping[Suite, Collection[int]], places: Places) -> list[Change]:
    found: dict[int, Change] = {}
    for suite in sorted(set(each.measured.values())):
        # If another suite measured it at a commit, it is not missing there.
        commits = {*reported.get((each.machine_id, suite), ()), *each.measured} - set(each.failed)
        ordered = sorted(commits, key=places.__getitem__)
        runs = [list(run) for _, run in groupby(ordered, key=lambda commit: commit in each.measured)]
        for place, absent in enumerate(runs):
            if absent[0] in each.measured or place == 0 or len(absent) < ABSENT:
                continue
            if sum(each.measured[commit] == suite for commit in runs[place - 1]) < PRESENT:
                continue
            change = Change(
                case_id=each.case_id,
                machine_id=each.machine_id,
                series_id=None,
                variant=each.variant,
                kind="missing",
                worse=True,
                evidence="absence",
                standing="claimed",
                reference_id=runs[place - 1][-1],
                commit_id=absent[0],
                ended_id=runs[place + 1][0] if place + 1 < len(runs) else None,
            )
            known = found.get(change.reference_id)
            if known is None or places[change.commit_id] < places[known.commit_id]:
                found[change.reference_id] = change
    return list(found.values())
