"""Which software changed on a machine between two of its reports: another NumPy makes other arrays.

Facts of a machine are told by reports, and what is told differently than before is kept with the time at which it came
(`FactsChange`). So what stood on a machine when a report came is known, whichever commit it is of.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements

COUNTS_DEPEND_ON: Final = ("python", "numpy", "scipy", "llvmlite", "blas", "libc")
"""Facts that decide which arrays are made. A kernel or a driver makes others no more than the weather does."""

_OF_COMMITS: Final[LiteralString] = """
SELECT id, machine_id, received_at
  FROM report
 WHERE commit_id = ANY (%(commits)s) AND (points > 0 OR failures > 0)
"""
_OF_IDS: Final[LiteralString] = "SELECT id, machine_id, received_at FROM report WHERE id = ANY (%(reports)s)"
_CHANGES: Final[LiteralString] = """
SELECT change.machine_id, change.at, change.before, change.after
  FROM unnest(%(machines)s::bigint[], %(first)s::timestamptz[], %(last)s::timestamptz[]) given (machine_id, first, last)
  JOIN facts_change change ON change.machine_id = given.machine_id AND change.at > given.first AND change.at <= given.last
 WHERE change.before ?| %(facts)s OR change.after ?| %(facts)s
 ORDER BY change.at, change.id
"""


class _Came(NamedTuple):
    """From which machine a report came, and when."""

    machine_id: int
    at: datetime


class _Change(NamedTuple):
    """Facts that were told differently than before."""

    at: datetime
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class Software:
    """The software under some reports, as far as it changed between them."""

    def __init__(
        self, came: Mapping[UUID, _Came] | None = None, changes: Mapping[int, Sequence[_Change]] | None = None
    ) -> None:
        self._came = came or {}
        self._changes = changes or {}
        self._said: dict[tuple[int, int, int, bool], str] = {}

    @property
    def machines(self) -> Collection[int]:
        """Those on which anything changed between the reports."""
        return self._changes.keys()

    def between(self, older: UUID, newer: UUID) -> str:
        """What a report was measured with and then another, in words, where it was not the same; empty where it was.

        The newer one may have come first: late results are as good as any.
        """
        one, other = self._came.get(older), self._came.get(newer)
        if one is None or other is None or one.machine_id != other.machine_id:
            return ""
        changes = self._changes.get(one.machine_id)
        if changes is None:
            return ""
        forwards = one.at <= other.at
        first, last = sorted(bisect_right(changes, at, key=_time_of) for at in (one.at, other.at))
        key = one.machine_id, first, last, forwards
        if key not in self._said:  # of a long history many pairs are told the same
            self._said[key] = _told(changes[first:last], forwards=forwards)
        return self._said[key]


async def software_at(session: AsyncSession, commit_ids: Collection[int]) -> Software:
    """The software under all reports of some commits. Index: ix_report_commit_id, ix_facts_change_machine_id."""
    return await _software(session, await statements.rows(session, _OF_COMMITS, {"commits": list(commit_ids)}))


async def software_under(session: AsyncSession, report_ids: Collection[UUID]) -> Software:
    """The software under some reports. Index: pk_report, ix_facts_change_machine_id."""
    return await _software(session, await statements.rows(session, _OF_IDS, {"reports": list(report_ids)}))


def differing_software(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Such as `numpy 1.26.4, then 2.4.0; python CPython 3.11.7, then CPython 3.12.1`; empty where nothing differs."""
    return "; ".join(
        f"{fact} {_word(before.get(fact))}, then {_word(after.get(fact))}"
        for fact in COUNTS_DEPEND_ON
        if before.get(fact) != after.get(fact)
    )


def doubt_of_change(software: str) -> str:
    """Why a count that changed is not the commit's doing, where this software changed with it."""
    return f"Counted with other software ({software}): compare both commits in one installation to tell."


async def _software(session: AsyncSession, reports: Sequence[tuple[Any, ...]]) -> Software:
    came = {id_: _Came(machine_id, at) for id_, machine_id, at in reports}
    times: dict[int, list[datetime]] = defaultdict(list)
    for machine_id, at in came.values():
        times[machine_id].append(at)
    asked = {
        "machines": list(times),
        "first": [min(of_machine) for of_machine in times.values()],
        "last": [max(of_machine) for of_machine in times.values()],
        "facts": list(COUNTS_DEPEND_ON),
    }
    changes: dict[int, list[_Change]] = defaultdict(list)
    for machine_id, *change in await statements.rows(session, _CHANGES, asked) if times else ():
        changes[machine_id].append(_Change(*change))
    return Software(came, dict(changes))


def _told(changes: Sequence[_Change], *, forwards: bool) -> str:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for change in changes:
        for fact in COUNTS_DEPEND_ON:
            if fact in change.before or fact in change.after:
                before.setdefault(fact, change.before.get(fact))
                after[fact] = change.after.get(fact)
    return differing_software(before, after) if forwards else differing_software(after, before)


def _time_of(change: _Change) -> datetime:
    return change.at


def _word(fact: object) -> str:
    return "not told" if fact is None else str(fact)
