"""The commit since which a variant of a case is missing, although its suite still reports from its machine. Pure: reports in, changes out.

Reports of one machine, one device and one suite are alike: a part of a suite is another suite. A failure is not an absence: it has its own incident.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from pullback_service.incidents.changes import Change, Places

ABSENT: Final = 3
"""The number of commits in a row without it after which it is missing."""
PRESENT: Final = 2
"""The number of commits in a row that must have had it before."""
SURE: Final = 30
"""The number of measured commits behind which a stretch is found for certain, where older ones were not read."""

Suite: TypeAlias = tuple[int, str]
"""A machine, and a suite or the format of another tool with its device: reports of one such pair measure the same."""


class TrackedVariant(NamedTuple):
    """A variant of a case on a machine: commits of the trunk at which it was measured, each with its suite, and at which it failed.

    `since`: the place from which on these are all; commits before it are not among them.
    """

    case_id: int
    machine_id: int
    variant: str
    measured: Mapping[int, str]
    failed: Collection[int] = frozenset()
    since: int | None = None


def missing_of(
    tracked: Iterable[TrackedVariant],
    reported: Mapping[Suite, Collection[int]],
    places: Places,
    stored: Iterable[Change] = (),
) -> list[Change]:
    """The stretches of commits whose reports lack what earlier reports of their suite had, each after the last that had it.

    `reported` are the commits of the trunk with reports of each suite. Where the commits of a variant begin somewhere, the stretches before
    its `SURE`th one stay as they are `stored`: the reports before them may lie further back.
    """
    known: dict[tuple[int, int, str | None], list[Change]] = defaultdict(list)
    for change in stored:
        if change.kind == "missing" and change.reference_id in places and change.commit_id in places:
            known[change.case_id, change.machine_id, change.variant].append(change)
    results = []
    for each in tracked:
        sure = _sure_since(each, places)
        results += [change for change in known[each[:3]] if places[change.reference_id] < sure]
        results += [change for change in _missing(each, reported, places) if places[change.reference_id] >= sure]
    return results


def _sure_since(each: TrackedVariant, places: Places) -> int:
    """The place of the commit after which all stretches are found."""
    if each.since is None:
        return -1
    within = sorted(place for commit in each.measured if (place := places[commit]) >= each.since)
    return within[min(SURE, len(within)) - 1]


def _missing(each: TrackedVariant, reported: Mapping[Suite, Collection[int]], places: Places) -> list[Change]:
    results: dict[int, Change] = {}
    for suite in sorted(set(each.measured.values())):
        # If another suite measured it at a commit, it is not missing there.
        commits = {*reported.get((each.machine_id, suite), ()), *each.measured} - set(each.failed)
        if each.since is not None:
            commits = {commit for commit in commits if places[commit] >= each.since}
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
            known = results.get(change.reference_id)
            if known is None or places[change.commit_id] < places[known.commit_id]:
                results[change.reference_id] = change
    return list(results.values())
