"""Differences in software between two reports: another NumPy makes other arrays.

Facts of a machine are told by reports, and what is told differently than before is kept with the time at which it came
(`FactsChange`). So what stood on a machine when a report came is known, whichever commit it is of: between two reports of a
machine by what changed there, of reports of two machines by the facts of each, with later changes undone.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.statements import Query, QueryBatch, Rows

COUNTS_DEPEND_ON: Final = ("python", "numpy", "scipy", "llvmlite", "blas", "libc")
"""Facts that decide which arrays are made. A kernel or a driver makes others no more than the weather does."""
COUNTS_OF_PEERS_DEPEND_ON: Final[Mapping[str, Sequence[str]]] = {
    "autograd": ("autograd",),
    "jax": ("jax", "jaxlib"),
    "numba": ("numba",),
    "torch": ("torch",),
    "torch-compile": ("torch",),
}
"""The packages whose versions decide besides for a variant that is a peer. Our tiers are at the commit."""
_FACTS: Final = tuple(dict.fromkeys([*COUNTS_DEPEND_ON, *chain.from_iterable(COUNTS_OF_PEERS_DEPEND_ON.values())]))

_OF_COMMITS: Final[LiteralString] = """
SELECT id, machine_id, received_at
  FROM report
 WHERE commit_id = ANY (%(commits)s) AND (points > 0 OR failures > 0)
   AND (%(machines)s::bigint[] IS NULL OR machine_id = ANY (%(machines)s::bigint[]))
"""
_OF_IDS: Final[LiteralString] = "SELECT id, machine_id, received_at FROM report WHERE id = ANY (%(reports)s)"
_CHANGES: Final[LiteralString] = """
SELECT change.machine_id, change.at, change.before, change.after
  FROM unnest(%(machines)s::bigint[], %(first)s::timestamptz[], %(last)s::timestamptz[]) given (machine_id, first, last)
  JOIN facts_change change ON change.machine_id = given.machine_id AND change.at > given.first AND change.at <= given.last
 WHERE change.before ?| %(facts)s OR change.after ?| %(facts)s
 ORDER BY change.at, change.id
"""
_CHANGES_AT: Final[LiteralString] = _CHANGES.replace(
    "unnest(%(machines)s::bigint[], %(first)s::timestamptz[], %(last)s::timestamptz[]) given (machine_id, first, last)",
    f"""(SELECT machine_id, min(received_at) AS first, coalesce(%(until)s::timestamptz, max(received_at)) AS last
          FROM ({_OF_COMMITS}) came
         GROUP BY machine_id) given""",  # noqa: S608 - our own words
)
_MACHINES: Final[LiteralString] = "SELECT id, facts FROM machine WHERE id = ANY (%(machines)s)"


class _ReportOrigin(NamedTuple):
    """The machine of a report, and its time."""

    machine_id: int
    at: datetime


class _Change(NamedTuple):
    """Facts that were told differently than before."""

    at: datetime
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class Software:
    """The software under some reports, as far as it changed between them; with `facts`, also between their machines."""

    def __init__(
        self,
        came: Mapping[UUID, _ReportOrigin] | None = None,
        changes: Mapping[int, Sequence[_Change]] | None = None,
        facts: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> None:
        self._came = came or {}
        self._changes = changes or {}
        self._facts = facts or {}
        self._said: dict[tuple[int, int, int, bool, Sequence[str]], str] = {}

    @property
    def machines(self) -> Collection[int]:
        """Those of which two reports may have been measured with different software."""
        return self._changes.keys() | self._facts.keys()

    def between(self, older: UUID, newer: UUID, variant: str) -> str:
        """The software with which two reports measured a variant, in words, if it differs; otherwise empty.

        The newer one may have come first: late results are as good as any.
        """
        one, other = self._came.get(older), self._came.get(newer)
        if one is None or other is None:
            return ""
        facts = _facts_of(variant)
        if one.machine_id == other.machine_id:
            return self._changed(one, other, facts)
        if not {one.machine_id, other.machine_id} <= self._facts.keys():
            return ""
        return differing_software(self._told_at(one), self._told_at(other), facts, link=" and")

    def _changed(self, one: _ReportOrigin, other: _ReportOrigin, facts: Sequence[str]) -> str:
        changes = self._changes.get(one.machine_id)
        if changes is None:
            return ""
        forwards = one.at <= other.at
        first, last = sorted(bisect_right(changes, at, key=_time_of) for at in (one.at, other.at))
        key = one.machine_id, first, last, forwards, facts
        if key not in self._said:  # of a long history many pairs are told the same
            self._said[key] = _told(changes[first:last], facts, forwards=forwards)
        return self._said[key]

    def _told_at(self, came: _ReportOrigin) -> Mapping[str, Any]:
        """The facts of a machine when a report came."""
        facts = dict(self._facts[came.machine_id])
        changes = self._changes.get(came.machine_id, ())
        for change in reversed(changes[bisect_right(changes, came.at, key=_time_of) :]):
            for fact in change.after.keys() | change.before.keys():
                facts[fact] = change.before.get(fact)
        return facts


def software_at(
    ask: QueryBatch, commit_ids: Collection[int], machine_ids: Collection[int] | None = None
) -> Callable[[], Software]:
    """The software under all reports of some commits; on some machines it may also differ from one machine to another.

    Index: ix_report_commit_id, ix_facts_change_machine_id; of machines pk_machine.
    """
    machines = None if machine_ids is None else list(machine_ids)
    values = {"commits": list(commit_ids), "machines": machines}
    came = ask(Query(_OF_COMMITS, values, _came, width=3))
    until = {"facts": list(_FACTS), "until": None if machines is None else _NOW}
    changes = ask(Query(_CHANGES_AT, {**values, **until}, _by_machine, width=4))
    facts = (
        None
        if machines is None
        else ask(Query(_MACHINES, {"machines": machines}, dict[int, Mapping[str, Any]], width=2))
    )
    return lambda: Software(came.value, changes.value, None if facts is None else facts.value)


async def software_under(session: AsyncSession, report_ids: Collection[UUID]) -> Software:
    """The software under some reports. Index: pk_report, ix_facts_change_machine_id."""
    came = _came(await statements.rows(session, _OF_IDS, {"reports": list(report_ids)}))
    return Software(came, await _changes(session, came))


def differing_software(
    before: Mapping[str, Any], after: Mapping[str, Any], facts: Sequence[str], *, link: str = ", then"
) -> str:
    """Such as `numpy 1.26.4, then 2.4.0; python CPython 3.11.7, then CPython 3.12.1`; empty where nothing differs."""
    return "; ".join(
        f"{fact} {_word(before.get(fact))}{link} {_word(after.get(fact))}"
        for fact in facts
        if before.get(fact) != after.get(fact)
    )


_NOW: Final = datetime.max.replace(tzinfo=UTC)
"""The end of a period that has all changes."""


def _came(reports: Rows) -> Mapping[UUID, _ReportOrigin]:
    return {id_: _ReportOrigin(machine_id, at) for id_, machine_id, at in reports}


async def _changes(session: AsyncSession, came: Mapping[UUID, _ReportOrigin]) -> Mapping[int, Sequence[_Change]]:
    """The changes between the first and the last report of each machine."""
    times: dict[int, list[datetime]] = defaultdict(list)
    for machine_id, at in came.values():
        times[machine_id].append(at)
    values = {
        "machines": list(times),
        "first": [min(of_machine) for of_machine in times.values()],
        "last": [max(of_machine) for of_machine in times.values()],
        "facts": list(_FACTS),
    }
    return _by_machine(await statements.rows(session, _CHANGES, values)) if times else {}


def _by_machine(rows: Rows) -> Mapping[int, Sequence[_Change]]:
    changes: dict[int, list[_Change]] = defaultdict(list)
    for machine_id, *change in rows:
        changes[machine_id].append(_Change(*change))
    return dict(changes)


def _facts_of(variant: str) -> Sequence[str]:
    return (*COUNTS_DEPEND_ON, *COUNTS_OF_PEERS_DEPEND_ON.get(variant, ()))


def _told(changes: Sequence[_Change], facts: Sequence[str], *, forwards: bool) -> str:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for change in changes:
        for fact in facts:
            if fact in change.before or fact in change.after:
                before.setdefault(fact, change.before.get(fact))
                after[fact] = change.after.get(fact)
    return differing_software(before, after, facts) if forwards else differing_software(after, before, facts)


def _time_of(change: _Change) -> datetime:
    return change.at


def _word(fact: object) -> str:
    return "unknown" if fact is None else str(fact)
