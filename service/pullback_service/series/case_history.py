"""One case across commits on one machine: its series in some metrics, thinned where commits are more than marks.

Of more commits than marks, value, ratio and interval of every reading are read first, and only the readings that are drawn in
full.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby, pairwise
from operator import attrgetter
from typing import LiteralString, TypeVar

from sqlalchemy import Integer, Select, bindparam, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits import history
from pullback_service.commits.following import followed_in, places_followed
from pullback_service.errors import Missing, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.models.commits import Commit
from pullback_service.models.machines import Machine
from pullback_service.models.reports import Failure
from pullback_service.models.series import Case, Series
from pullback_service.readings.queries import newest_marks, newest_readings, readings_at
from pullback_service.readings.reading import Mark, Place, Reading
from pullback_service.series.overviewing import KnownCase
from pullback_service.series.queries import (
    MOST_FAILURES,
    CommitFacts,
    FailedCase,
    commits_of_ids,
    failed_case,
    select_failures,
)
from pullback_service.series.thinning import thin

MOST_COMMITS = 5_000
MOST_MARKS = 1_000
"""Of one series. A plot is about so many pixels wide, and M4 keeps four points or six for each of its buckets."""


@dataclass(frozen=True, slots=True)
class CaseSeries:
    """A series of a case."""

    id: int
    variant: str
    metric: str
    unit: str
    direction: str
    exact: bool


@dataclass(frozen=True)
class CaseHistory:
    """Commits of a window, oldest first, with the readings that are to be drawn.

    Readings come series by series and then oldest first. `thinned`: there are more than these, and `before` has the
    reading before each of them by (series, commit). `follows` says by their places which commit another follows, where
    that is not the one before it; -1 where it lies before the window. It is known where that is wanted.
    """

    commits: Sequence[CommitFacts]
    readings: Sequence[Reading]
    failures: Sequence[FailedCase]
    before: Mapping[tuple[int, int], Reading]
    thinned: bool
    follows: Mapping[int, int]

    @cached_property
    def parted(self) -> frozenset[int]:
        """The commits that do not follow the one before them."""
        return frozenset(self.commits[place].id for place in self.follows)


_CASES: LiteralString = """
SELECT id, workload, label,
       ARRAY (SELECT machine_id FROM series WHERE case_id = "case".id
               UNION
              SELECT machine_id FROM failure WHERE case_id = "case".id)
  FROM "case"
 WHERE project_id = %(project)s AND workload = %(workload)s
 ORDER BY id
"""
_SERIES = (
    select(Series.id, Series.variant, Series.metric, Series.unit, Series.direction, Series.exact)
    .where(Series.case_id == bindparam("case"), Series.machine_id == bindparam("machine"))
    .order_by(Series.id)
)


async def cases_of_workload(
    session: AsyncSession, project_id: ProjectId, workload: str
) -> Mapping[KnownCase, frozenset[int]]:
    """Cases of a workload, each with the machines on which it was measured or failed.

    Index: ix_case_workload, uq_series_case_id_variant_metric_machine_id, ix_failure_case_history.
    """
    rows = await statements.rows(session, _CASES, {"project": project_id, "workload": workload})
    if not rows:
        raise NotFoundError(
            f"No upload of this project has a workload named {workload!r}.", missing=Missing("workload", workload)
        )
    return {KnownCase(*case): frozenset(machines) for *case, machines in rows}


async def series_of_case(session: AsyncSession, case_id: int, machine_id: MachineId) -> Sequence[CaseSeries]:
    """Series of a case on a machine. Index: uq_series_case_id_variant_metric_machine_id."""
    rows = await session.execute(_SERIES, {"case": case_id, "machine": machine_id})
    return [CaseSeries(*row) for row in rows]


async def case_history(
    session: AsyncSession,
    project_id: ProjectId,
    case_id: int,
    machine_id: MachineId,
    series: Sequence[CaseSeries],
    metrics: Collection[str],
    *,
    last: int,
    following: bool = True,
) -> CaseHistory:
    """The newest `last` commits of a case with its series in some metrics, and which commits follow which, if wanted.

    Index: ix_reading_series_history, ix_failure_case_history, pk_commit, as `followed_in`; thinned pk_reading.
    """
    last = min(last, MOST_COMMITS)
    drawn = [one.id for one in series if one.metric in metrics]
    # So few commits are all drawn; of more, only the readings that are drawn are read in full.
    whole = await newest_readings(session, drawn, last=last) if last <= MOST_MARKS else []
    marks = await newest_marks(session, drawn, last=last) if last > MOST_MARKS else []
    failures = await _failures(session, case_id, machine_id, last)
    measured = _places(whole) if whole else _places(marks)
    places = _window(measured, failures, last)
    if not places:
        return CaseHistory([], [], [], {}, thinned=False, follows={})
    oldest, known = places[0], {commit_id for _, commit_id in places}
    before: Mapping[tuple[int, int], Reading] = {}
    thinned = False
    if marks:
        groups = [[mark for mark in group if mark.place >= oldest] for group in _by_series(marks)]
        kept = {pair: earlier for group in groups for pair, earlier in _kept(group).items()}
        thinned = len(kept) < sum(map(len, groups))
        previous = {pair: earlier for pair, earlier in kept.items() if earlier is not None and thinned}
        at = await readings_at(session, {*kept, *previous.values()})
        whole = [at[pair] for pair in kept]
        before = {pair: at[earlier] for pair, earlier in previous.items()}
    followed = await followed_in(session, project_id, [one.id for one in series], known) if following else {}
    follows = places_followed(places, followed)
    return CaseHistory(
        commits=await commits_of_ids(session, known),
        readings=[reading for reading in whole if reading.commit_id in known],
        failures=[failure for failure in failures if failure.commit.id in known],
        before=before,
        thinned=thinned,
        follows=follows,
    )


# Made once: an expression, its key and its text take 2 ms.
@cache
def _newest_failures() -> Select[Failure, Case, Commit, Machine]:
    """The `most` newest failures of a `case` on a `machine`."""
    return (
        select_failures()
        .where(Failure.case_id == bindparam("case"), Failure.machine_id == bindparam("machine"))
        .order_by(*history.newest_first(Failure), Failure.id.desc())
        .limit(bindparam("most", type_=Integer))
    )


async def _failures(session: AsyncSession, case_id: int, machine_id: MachineId, last: int) -> Sequence[FailedCase]:
    values = {"case": case_id, "machine": machine_id, "most": min(last, MOST_FAILURES)}
    rows = await session.execute(_newest_failures(), values)
    return [failed_case(row) for row in reversed(rows.all())]


def _window(measured: Sequence[Sequence[Place]], failures: Sequence[FailedCase], last: int) -> list[Place]:
    """Places of the commits, oldest first: no older than where a series had more than could be read."""
    places = {place for of_series in measured for place in of_series}
    newest = sorted(places | {(failure.commit.ordered_at, failure.commit.id) for failure in failures})[-last:]
    begins = [min(of_series) for of_series in measured if len(of_series) >= last]
    if not begins:
        return newest
    first = max(begins)
    return [place for place in newest if place >= first] or newest


def _kept(marks: Sequence[Mark]) -> dict[tuple[int, int], tuple[int, int] | None]:
    """The readings of a series to draw, as (series, commit), each with the one before it."""
    if not marks:
        return {}
    pairs = [(mark.series_id, mark.commit_id) for mark in marks]
    traces: list[list[float | None]] = [[mark.value for mark in marks], [mark.ratio.log_ratio for mark in marks]]
    changed = [place for place, (one, other) in enumerate(pairwise(marks), 1) if one.value != other.value]
    counted = changed if len(changed) <= MOST_MARKS // 8 else ()  # of counts all changes stay; times always differ
    chosen = thin(traces, MOST_MARKS, keep={place for at in counted for place in (at - 1, at)})
    return {pairs[place]: pairs[place - 1] if place else None for place in chosen}


M = TypeVar("M", Mark, Reading)


def _by_series(marks: Iterable[M]) -> list[list[M]]:
    return [list(group) for _, group in groupby(marks, key=attrgetter("series_id"))]


def _places(marks: Iterable[M]) -> list[list[Place]]:
    return [[mark.place for mark in group] for group in _by_series(marks)]
