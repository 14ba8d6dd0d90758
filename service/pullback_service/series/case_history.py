"""One case across commits on one machine: its series in some metrics, thinned where commits are more than marks.

What is read first is light (value, ratio and interval of every point in the window), so that of five thousand commits only
the points that are drawn are read in full.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, LiteralString, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import Integer, Row, Select, bindparam, case, func, lateral, select, true
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.among import among
from pullback_service.commits import history
from pullback_service.commits.following import followed_in, places_followed
from pullback_service.commits.models import Commit
from pullback_service.errors import Missing, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.machines.models import Machine
from pullback_service.readings.pooling import counting, speaker
from pullback_service.reports.models import Failure
from pullback_service.reports.parts import WRONG_GRADIENT
from pullback_service.series.lean_points import LeanPoint, lean_points_of, lean_points_since
from pullback_service.series.models import Case, Point, Series
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
from pullback_service.series.windows import Place

MOST_COMMITS = 5_000
MOST_MARKS = 1_000
"""Of one series. A plot is about so many pixels wide, and M4 keeps four points or six for each of its buckets."""
MOST_CHANGES = 2_000

Light: TypeAlias = Row[Any]
"""A point with its place in history, value, ratio and interval, and what pooling reads."""


_PLACES = """
SELECT series.id, newest.*
  FROM unnest(%(series)s::bigint[]) series(id), LATERAL (
    SELECT DISTINCT ordered_at, commit_id
      FROM point
     WHERE series_id = series.id
     ORDER BY ordered_at DESC, commit_id DESC
     LIMIT %(last)s) newest
"""


@dataclass(frozen=True, slots=True)
class CaseSeries:
    """A series of a case."""

    id: int
    variant: str
    metric: str
    unit: str
    direction: str
    exact: bool


class Before(NamedTuple):
    """What a series said at the commit measured before."""

    value: float
    log_ratio: float | None
    low: float | None
    high: float | None
    report_id: UUID


@dataclass(frozen=True, slots=True)
class CountChange:
    """An exact metric that is another than at the commit measured before, with the reports that counted both."""

    series: CaseSeries
    commit_before: int
    commit_id: int
    before: float
    value: float
    reports: tuple[UUID, UUID]


@dataclass(frozen=True)
class CaseHistory:
    """Commits of a window, oldest first, with the points that are to be drawn and what each of these followed.

    Points come series by series and then oldest first. `thinned` says that there are more than these, and only then what
    each of them followed is told. `follows` says by their places which commit another follows, where that is not the one
    before it; -1 where it lies before the window. It is known where changes are wanted.
    """

    commits: Sequence[CommitFacts]
    points: Sequence[LeanPoint]
    failures: Sequence[FailedCase]
    before: Mapping[tuple[int, int], Before]
    changes: Sequence[CountChange]
    thinned: bool
    follows: Mapping[int, int]

    @cached_property
    def parted(self) -> frozenset[int]:
        """The commits that do not follow the one before them."""
        return frozenset(self.commits[place].id for place in self.follows)


_CASES = (
    select(Case.id, Case.workload, Case.label)
    .where(Case.project_id == bindparam("project"), Case.workload == bindparam("workload"))
    .order_by(Case.id)
)
_SERIES = (
    select(Series.id, Series.variant, Series.metric, Series.unit, Series.direction, Series.exact)
    .where(Series.case_id == bindparam("case"), Series.machine_id == bindparam("machine"))
    .order_by(Series.id)
)


async def cases_of_workload(session: AsyncSession, project_id: ProjectId, workload: str) -> Sequence[KnownCase]:
    """Cases of a workload. Index: ix_case_workload."""
    rows = await session.execute(_CASES, {"project": project_id, "workload": workload})
    found = [KnownCase(*row) for row in rows]
    if not found:
        raise NotFoundError(
            f"No upload of this project has a workload named {workload!r}.", missing=Missing("workload", workload)
        )
    return found


_MEASURED_ON: LiteralString = """
SELECT case_id, machine_id FROM series WHERE case_id = ANY (%(cases)s)
 UNION
SELECT case_id, machine_id FROM failure WHERE case_id = ANY (%(cases)s)
"""


async def measured_on(session: AsyncSession, case_ids: Collection[int]) -> Mapping[int, frozenset[int]]:
    """On which machines cases were measured or failed. Index: uq_series_case_id_variant_metric_machine_id, ix_failure_case_history."""
    found: dict[int, set[int]] = {}
    for case_id, machine_id in await statements.rows(session, _MEASURED_ON, {"cases": list(case_ids)}):
        found.setdefault(case_id, set()).add(machine_id)
    return {case_id: frozenset(machines) for case_id, machines in found.items()}


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
    changes: bool = True,
) -> CaseHistory:
    """The newest `last` commits of a case with its series in some metrics; changes, if wanted, are of all exact metrics.

    Index: ix_point_series_history, ix_failure_case_history, pk_commit, for changes as `followed_in`; thinned
    ix_point_commit_id_series_id.
    """
    last = min(last, MOST_COMMITS)
    drawn = [one.id for one in series if one.metric in metrics]
    # So few commits are all drawn: of their points only the places must be known before they are read.
    light = await _light(session, drawn, last) if last > MOST_MARKS else []
    measured = [[_place(row) for row in group] for group in _by_series(light)] or await _places(session, drawn, last)
    failures = await _failures(session, case_id, machine_id, last)
    places = _window(measured, failures, last)
    if not places:
        return CaseHistory([], [], [], {}, [], thinned=False, follows={})
    oldest, known = places[0], {commit_id for _, commit_id in places}
    kept, before = _kept(light, oldest)
    total = sum(1 for row in light if _place(row) >= oldest)
    thinned = len(places) > MOST_MARKS
    followed = await followed_in(session, project_id, [one.id for one in series], known) if changes else {}
    follows = places_followed(places, followed)
    points = await (lean_points_of(session, kept) if thinned else lean_points_since(session, drawn, oldest))
    return CaseHistory(
        commits=await commits_of_ids(session, known),
        points=[point for point in points if point.commit_id in known],
        failures=[failure for failure in failures if failure.commit.id in known],
        before=before,
        changes=await _changes(session, [one for one in series if one.exact and changes], places, follows, failures),
        thinned=thinned and len(kept) < total,
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


async def machine_names(session: AsyncSession, machine_ids: Collection[int]) -> Mapping[int, str]:
    """Names of machines. Index: pk_machine."""
    rows = await session.execute(select(Machine.id, Machine.name).where(among(Machine.id, machine_ids)))
    return {row[0]: row[1] for row in rows}


async def _light(session: AsyncSession, series_ids: Collection[int], last: int) -> Sequence[Light]:
    """Points of the newest `last` commits of series, series by series and then oldest first; one row for each commit.

    Of several reports at a commit the one speaks whose ratio stands for all, or whose count does. What processes took is
    not read for that: of what is timed, values only choose which points are drawn.

    One row more than commits are wanted is read of each series: of those that have several reports at a commit, and so may
    go further back, Postgres then says which report speaks, so that what is read never is more than that.
    """
    if not series_ids:
        return []
    rows = (await session.execute(_newest_points(series_ids, last + 1))).all()
    by_series = [list(group) for _, group in groupby(rows, key=attrgetter("series_id"))]
    spoken = [[_speaker(list(same)) for _, same in groupby(group, key=attrgetter("commit_id"))] for group in by_series]
    cut = {group[0].series_id for group, said in zip(by_series, spoken, strict=True) if len(said) <= last < len(group)}
    whole = [row for said in spoken if said[0].series_id not in cut for row in said[-last:]]
    if not cut:
        return whole
    one_each = await session.execute(_newest_points(cut, last, one_each=True))
    return sorted([*whole, *one_each], key=lambda row: (row.series_id, *_place(row)))


def _newest_points(series_ids: Collection[int], limit: int, *, one_each: bool = False) -> Select[Any]:
    """The newest points of series, or of the newest commits the `one_each` that `_speaker` names."""
    newest = select(
        Point.id,
        Point.ordered_at,
        Point.commit_id,
        Point.report_id,
        Point.value,
        Point.log_ratio,
        Point.low,
        Point.high,
        Point.n,
        Point.quality,
    ).where(Point.series_id == Series.id)
    order = history.newest_first(Point)
    if one_each:
        groups = case((Series.exact, 0), else_=func.coalesce(Point.n, 0))
        newest = newest.ext(distinct_on(*history.place(Point)))
        newest = newest.order_by(*order, Point.quality != "clean", groups.desc(), Point.id.desc())
    else:
        newest = newest.order_by(*order, Point.id.desc())
    found = lateral(newest.limit(limit))
    return (
        select(Series.id.label("series_id"), Series.exact, found)
        .join_from(Series, found, true())
        .where(among(Series.id, series_ids))
        .order_by(Series.id, found.c.ordered_at, found.c.commit_id, found.c.id)
    )


def _speaker(of_commit: list[Light]) -> Light:
    first = of_commit[0]
    return first if len(of_commit) == 1 else counting(of_commit) if first.exact else speaker(of_commit)


async def _failures(session: AsyncSession, case_id: int, machine_id: MachineId, last: int) -> Sequence[FailedCase]:
    values = {"case": case_id, "machine": machine_id, "most": min(last, MOST_FAILURES)}
    rows = await session.execute(_newest_failures(), values)
    return [failed_case(row) for row in reversed(rows.all())]


async def _places(session: AsyncSession, series_ids: Collection[int], last: int) -> list[list[Place]]:
    """Where series were measured, series by series; of each the newest commits."""
    found: dict[int, list[Place]] = {}
    for id_, at, commit_id in await statements.rows(
        session, _PLACES, {"series": list(series_ids), "last": last}, binary=True
    ):
        found.setdefault(id_, []).append((at, commit_id))
    return list(found.values())


def _window(measured: Sequence[Sequence[Place]], failures: Sequence[FailedCase], last: int) -> list[Place]:
    """Places of the commits, oldest first: no older than where a series had more than could be read."""
    places = {place for of_series in measured for place in of_series}
    newest = sorted(places | {(failure.commit.ordered_at, failure.commit.id) for failure in failures})[-last:]
    begins = [min(of_series) for of_series in measured if len(of_series) >= last]
    if not begins:
        return newest
    first = max(begins)
    return [place for place in newest if place >= first] or newest


def _kept(light: Sequence[Light], oldest: Place) -> tuple[list[tuple[int, int]], dict[tuple[int, int], Before]]:
    """The points to draw of each series, and what each of them followed."""
    kept: list[tuple[int, int]] = []
    before: dict[tuple[int, int], Before] = {}
    for group in _by_series(light):
        rows = [row for row in group if _place(row) >= oldest]
        traces: list[list[float | None]] = [[row.value for row in rows], [row.log_ratio for row in rows]]
        changed = [place for place, (one, other) in enumerate(pairwise(rows), 1) if one.value != other.value]
        counted = changed if len(changed) <= MOST_MARKS // 8 else ()  # of counts all changes stay; times always differ
        keep = {place for at in counted for place in (at - 1, at)}
        chosen = thin(traces, MOST_MARKS, keep=keep) if rows else []
        for place in chosen:
            kept.append((rows[place].series_id, rows[place].commit_id))
            if place:
                last = rows[place - 1]
                before[kept[-1]] = Before(last.value, last.log_ratio, last.low, last.high, last.report_id)
    return kept, before


# Of several reports at a commit the one that `pooling.counting` names speaks. Neither how well they measured nor which
# reports they are is in the index: the one is read where there are several, the other of the changes alone.
_CHANGES: LiteralString = """
  WITH told AS (
       SELECT series_id, ordered_at, commit_id, value, id,
              count(*) OVER (PARTITION BY series_id, ordered_at, commit_id) AS reports
         FROM point
        WHERE series_id = ANY (%(series)s) AND (ordered_at, commit_id) >= (%(ordered_at)s, %(commit)s)),
       of_commit AS (
       SELECT DISTINCT ON (series_id, ordered_at, commit_id) series_id, ordered_at, commit_id, value, id
         FROM told
        ORDER BY series_id, ordered_at, commit_id,
              CASE WHEN reports > 1 THEN (SELECT quality = 'contaminated' FROM point WHERE point.id = told.id) END,
              id DESC),
       seen AS (
       SELECT *, lag(value) OVER history AS before, lag(id) OVER history AS id_before,
              lag(commit_id) OVER history AS commit_before
         FROM of_commit
       WINDOW history AS (PARTITION BY series_id ORDER BY ordered_at, commit_id)),
       changed AS (
       SELECT *
         FROM seen
        WHERE value != before
        ORDER BY ordered_at DESC, commit_id DESC, series_id
        LIMIT %(most)s)
SELECT changed.series_id, changed.commit_before, changed.commit_id, changed.before, changed.value, older.report_id,
       newer.report_id
  FROM changed
  JOIN point older ON older.id = changed.id_before
  JOIN point newer ON newer.id = changed.id
 ORDER BY changed.ordered_at, changed.commit_id, changed.series_id DESC
"""


async def _changes(
    session: AsyncSession,
    series: Sequence[CaseSeries],
    places: Sequence[Place],
    follows: Mapping[int, int],
    failures: Sequence[FailedCase],
) -> Sequence[CountChange]:
    """Counts that differ from those of the commit that was followed. Index: ix_point_series_history, pk_point.

    What was counted where a report found the gradient wrong is no count.
    """
    wrong = frozenset((failure.commit.id, failure.variant) for failure in failures if failure.kind == WRONG_GRADIENT)
    if follows or wrong:
        return await _changes_one_by_one(session, series, places, follows, wrong)
    if not series:
        return []
    (ordered_at, commit), known = places[0], {commit_id for _, commit_id in places}
    values = {
        "series": [one.id for one in series], "ordered_at": ordered_at, "commit": commit, "most": MOST_CHANGES,
    }  # fmt: skip
    by_id = {one.id: one for one in series}
    rows = await statements.rows(session, _CHANGES, values)
    by_id = {one.id: one for one in series}
    return [
        CountChange(by_id[series_id], commit_before, commit_id, before, value, (report_before, report_id))
        for series_id, commit_before, commit_id, before, value, report_before, report_id in rows
        if commit_id in known
    ]


async def _changes_one_by_one(
    session: AsyncSession,
    series: Sequence[CaseSeries],
    places: Sequence[Place],
    follows: Mapping[int, int],
    wrong: frozenset[tuple[int, str | None]],
) -> Sequence[CountChange]:
    """The same where commits do not all follow the one before them, or some count for nothing. Index: ix_point_series_history."""
    at = {commit_id: place for place, (_, commit_id) in enumerate(places)}
    variants = {one.id: one.variant for one in series}
    points = await lean_points_since(session, list(variants), places[0]) if series else []
    counted: dict[int, dict[int, LeanPoint]] = {}
    for point in points:
        if point.commit_id in at and not wrong & {
            (point.commit_id, variants[point.series_id]),
            (point.commit_id, None),
        }:
            counted.setdefault(point.series_id, {})[at[point.commit_id]] = point
    found = []
    for one in series:
        told = counted.get(one.id, {})
        for place, now in told.items():
            before = _followed(follows, place)
            while before >= 0 and before not in told:
                before = _followed(follows, before)
            if before >= 0 and told[before].value != now.value:
                older = told[before]
                reports = UUID(older.report_id), UUID(now.report_id)
                found.append(CountChange(one, older.commit_id, now.commit_id, older.value, now.value, reports))
    return sorted(found, key=lambda change: (at[change.commit_id], -change.series.id))[-MOST_CHANGES:]


def _followed(follows: Mapping[int, int], place: int) -> int:
    return min(follows.get(place, place - 1), place - 1)


def _by_series(light: Sequence[Light]) -> list[list[Light]]:
    return [list(group) for _, group in groupby(light, key=attrgetter("series_id"))]


def _place(row: Light) -> Place:
    return row.ordered_at, row.commit_id
