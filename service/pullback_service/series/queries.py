"""Reading cases, series and points. Pages and API share these; every function is bounded and names its index."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from sqlalchemy import Row, Select, Subquery, and_, bindparam, case, exists, func, lateral, select, true
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from pullback_service import statements
from pullback_service.commits import history
from pullback_service.commits.models import BranchCommit, Commit
from pullback_service.errors import NotFoundError
from pullback_service.ids import MachineId, ProjectId, SeriesId
from pullback_service.machines.models import Machine
from pullback_service.readings.pooling import Spread, counting, point_spread, pooled_spread, pooled_value, speaker
from pullback_service.reports.models import Failure
from pullback_service.series.models import ROLLED_UP, Case, Point, Series

MOST_MATRIX_POINTS = 50_000
MOST_HISTORY_POINTS = 200_000
MOST_FAILURES = 5_000
MOST_WORKLOADS = 1_000
LAST_UPLOADS = 20


class CommitFacts(NamedTuple):
    """A commit as pages show it. `ordered_at` is its place in history; `authored_at` may not be known."""

    id: int
    sha: str
    title: str | None
    author: str | None
    branch: str | None
    authored_at: datetime | None
    ordered_at: datetime


class CaseFacts(NamedTuple):
    """A case: the structured form and the derived label."""

    id: int
    workload: str
    label: str
    params: Mapping[str, Any]
    dtype: str | None
    device: str | None


class MachineFacts(NamedTuple):
    """A machine as pages show it."""

    id: int
    name: str
    fingerprint: str


class MeasuredCell(NamedTuple):
    """What one variant of a case gave for one metric at one commit on one machine, all its reports pooled.

    `value` is in `unit`; `spread` is over processes, None for exact metrics. The ratio is natural-log variant/baseline,
    None where nothing was paired. `report_ids` are all uploads behind the cell, newest last; `report_id` is the newest usable
    one, which counted.
    """

    series_id: int
    case: CaseFacts
    machine: MachineFacts
    commit: CommitFacts
    variant: str
    variant_kind: str
    metric: str
    unit: str
    direction: str
    exact: bool
    value: float
    spread: Spread | None
    baseline: str | None
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    outcome: str | None
    quality: str
    dirty: bool
    method: str | None
    program_hash: str | None
    report_id: UUID
    report_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class FailedCase:
    """A case, or one variant of it (`variant` is None for the whole case), that gave no measurement at a commit."""

    case: CaseFacts
    machine: MachineFacts
    commit: CommitFacts
    variant: str | None
    kind: str
    message: str
    report_id: UUID


@dataclass(frozen=True, slots=True)
class Matrix:
    """The newest state of a project: cells, and what failed at or after the newest measurement of its case.

    It is not `complete` when there is more than can be read at once.
    """

    cells: Sequence[MeasuredCell]
    failures: Sequence[FailedCase]
    complete: bool = True


async def latest_matrix(
    session: AsyncSession,
    project_id: ProjectId,
    *,
    machines: Collection[MachineId] | None = None,
    workloads: Collection[str] | None = None,
    metric: str | None = None,
    branch_id: int | None = None,
) -> Matrix:
    """Every variant and metric of every case of a project at the newest commit that has data for that case on that machine.

    Of a branch only its first parents count. Index: ix_series_project_id (or ix_case_workload and
    uq_series_case_id_variant_metric_machine_id for some workloads), then one probe of ix_point_series_history per series,
    on a branch with uq_branch_commit_branch_id_commit_id; ix_failure_case_history.
    """
    of = _Narrowed(machines is not None, workloads is not None, metric is not None, branch_id is not None)
    asked = {
        "project": project_id,
        "machines": machines,
        "workloads": workloads,
        "metric": metric,
        "branch": branch_id,
    }
    values = {name: value for name, value in asked.items() if value is not None}
    rows = await measured_points(session, _matrix_points(of), values)
    return Matrix(
        cells=sorted(
            await pooled_cells(session, rows[:MOST_MATRIX_POINTS]), key=lambda cell: (cell.case.workload, cell.case.id)
        ),
        failures=[failed_case(row) for row in (await session.execute(_matrix_failures(of), values)).all()],
        complete=len(rows) <= MOST_MATRIX_POINTS,
    )


@dataclass(frozen=True, slots=True)
class MeasuringMachine:
    """A machine that measures a project, and where in history the newest commit of its last uploads stands."""

    id: MachineId
    name: str
    newest: datetime


# Between, and in the whole order of the index: with a machine that equals, and the order of arrival alone, a planner reads
# all uploads of the project for every machine that has few of them or none.
_MEASURING: LiteralString = """
SELECT machine.id, machine.name, max(commit.ordered_at) AS newest
  FROM machine
  JOIN LATERAL (
    SELECT commit_id
      FROM report
     WHERE machine_id BETWEEN machine.id AND machine.id AND project_id = %(project)s AND (points > 0 OR failures > 0)
     ORDER BY machine_id DESC, project_id DESC, received_at DESC
     LIMIT %(last)s) uploads ON true
  JOIN commit ON commit.id = uploads.commit_id
 GROUP BY machine.id
 ORDER BY newest DESC, machine.id
"""


async def measuring_machines(session: AsyncSession, project_id: ProjectId) -> Sequence[MeasuringMachine]:
    """Machines with results of a project that was found, the one with the newest commit first. Index: ix_report_machine.

    Of each machine its last uploads are looked at, so that this takes as long as there are machines.
    """
    found = await statements.rows(session, _MEASURING, {"project": project_id, "last": LAST_UPLOADS})
    return [MeasuringMachine(MachineId(id_), name, newest) for id_, name, newest in found]


async def workloads(session: AsyncSession, project_id: ProjectId) -> Sequence[str]:
    """Names of the workloads of a project. Index: ix_case_workload."""
    statement = select(Case.workload).where(Case.project_id == project_id).distinct().order_by(Case.workload)
    return (await session.scalars(statement.limit(MOST_WORKLOADS))).all()


class _Narrowed(NamedTuple):
    """To what a matrix is kept, by values that its statements name as here; `branch` is one's id."""

    machines: bool
    workloads: bool
    metric: bool
    branch: bool


# Made once each: building them anew took 7 ms of every page with a matrix, and left 1,700 objects in cycles.
@cache
def _matrix_points(of: _Narrowed) -> Select[*tuple[Any, ...]]:
    """The points of `latest_matrix`."""
    known = _series_of(of)
    if of.metric:
        known = known.where(Series.metric == bindparam("metric"))
    newest = _newest_commit_of_cases(known.subquery("known"), of)
    # Each series enters its own index: joined in one go, a planner may take all points of the commits and filter them.
    newest_points = lateral(
        select(Point)
        .where(
            Point.series_id == Series.id,
            Point.ordered_at == newest.c.ordered_at,
            Point.commit_id == newest.c.commit_id,
        )
        .offset(0)
    )
    points = (
        select_points(of=aliased(Point, newest_points), after=newest)
        .order_by(Series.case_id, Series.variant, Series.metric, Series.id, newest_points.c.id)
        .limit(MOST_MATRIX_POINTS + 1)
    )
    return points.where(Series.metric == bindparam("metric")) if of.metric else points


@cache
def _matrix_failures(of: _Narrowed) -> Select[Failure, Case, Commit, Machine]:
    """The failures of `latest_matrix`: they are of no metric."""
    # Few cases have any, so that few series are looked at for them.
    failed = exists().where(Failure.case_id == Series.case_id, Failure.machine_id == Series.machine_id)
    newest = _newest_commit_of_cases(_series_of(of).where(failed).subquery("failing"), of)
    failures = (
        select_failures()
        .join(
            newest,
            and_(newest.c.case_id == Failure.case_id, newest.c.machine_id == Failure.machine_id),
            isouter=True,
        )
        .where(
            Case.project_id == bindparam("project"),
            newest.c.commit_id.is_(None) | history.since(Failure, newest.c.ordered_at, newest.c.commit_id),
        )
        .order_by(*history.newest_first(Failure), Failure.id)
        .limit(MOST_FAILURES)
    )
    if of.machines:
        failures = failures.where(Failure.machine_id.in_(bindparam("machines", expanding=True)))
    if of.workloads:
        failures = failures.where(Case.workload.in_(bindparam("workloads", expanding=True)))
    if of.branch:
        first_parents = select(BranchCommit.commit_id).where(BranchCommit.branch_id == bindparam("branch"))
        failures = failures.where(Failure.commit_id.in_(first_parents))
    return failures


def _series_of(of: _Narrowed) -> Select[int, int, int]:
    """The series of a matrix, of any metric."""
    series = select(Series.id, Series.case_id, Series.machine_id).where(Series.project_id == bindparam("project"))
    if of.machines:
        series = series.where(Series.machine_id.in_(bindparam("machines", expanding=True)))
    if of.workloads:
        of_workloads = Case.workload.in_(bindparam("workloads", expanding=True))
        series = series.join(Case, Case.id == Series.case_id).where(of_workloads)
    return series


def _newest_commit_of_cases(known: Subquery, of: _Narrowed) -> Subquery:
    """(case_id, machine_id, ordered_at, commit_id) of the newest commit with a point, for the given series."""
    newest = (
        select(Point.ordered_at, Point.commit_id)
        .where(Point.series_id == known.c.id)
        .order_by(*history.newest_first(Point))
        .limit(1)
    )
    if of.branch:
        newest = newest.join(
            BranchCommit,
            and_(BranchCommit.branch_id == bindparam("branch"), BranchCommit.commit_id == Point.commit_id),
        )
    newest_of_series = lateral(newest)
    return (
        select(known.c.case_id, known.c.machine_id, newest_of_series.c.ordered_at, newest_of_series.c.commit_id)
        .join_from(known, newest_of_series, true())
        .ext(distinct_on(known.c.case_id, known.c.machine_id))
        .order_by(
            known.c.case_id,
            known.c.machine_id,
            newest_of_series.c.ordered_at.desc(),
            newest_of_series.c.commit_id.desc(),
        )
        .subquery("newest")
    )


class MeasuredPoint(NamedTuple):
    """A point as `select_points` reads it, with what its series is."""

    series_id: int
    commit_id: int
    report_id: UUID
    value: float
    process_values: Sequence[float] | None
    process_count: int | None
    process_low: float | None
    process_q25: float | None
    process_q75: float | None
    process_high: float | None
    baseline: str | None
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    outcome: str | None
    quality: str
    method: str | None
    program_hash: str | None
    case_id: int
    machine_id: int
    variant: str
    variant_kind: str
    metric: str
    unit: str
    direction: str
    exact: bool


def select_points(
    *, spread: bool = True, of: type[Point] = Point, after: Subquery | None = None
) -> Select[*tuple[Any, ...]]:
    """Points with what their series are, for `measured_points`.

    Without `spread` the values of processes are left where they are unless several points of a commit must be pooled.
    `after` the newest commits of cases, points are those that `of` finds for each of their series.
    """
    together = func.count().over(partition_by=(of.series_id, of.commit_id))
    columns = select(
        of.series_id,
        of.commit_id,
        of.report_id,
        of.value,
        of.process_values if spread else case((together > 1, of.process_values)).label("process_values"),
        *(getattr(of, column.key) for column in ROLLED_UP),
        of.baseline,
        of.log_ratio,
        of.low,
        of.high,
        of.n,
        of.outcome,
        of.quality,
        of.method,
        of.program_hash,
        Series.case_id,
        Series.machine_id,
        Series.variant,
        Series.variant_kind,
        Series.metric,
        Series.unit,
        Series.direction,
        Series.exact,
    )
    if after is None:
        return columns.select_from(of).join(Series, Series.id == of.series_id)
    return (
        columns.select_from(after)
        .join(Series, and_(Series.case_id == after.c.case_id, Series.machine_id == after.c.machine_id))
        .join(of, true())
    )


async def measured_points(
    session: AsyncSession, statement: Select[*tuple[Any, ...]], values: Mapping[str, Any] | None = None
) -> list[MeasuredPoint]:
    """The points of a statement of `select_points`, with the values that it names.

    Past the session, whose loading takes longer than reading them, and its rule of what callers see: points are asked for
    by a project, a case or a series that was found where the rule is.
    """
    return [*map(MeasuredPoint._make, (await (await session.connection()).execute(statement, values)).all())]


def select_failures() -> Select[Failure, Case, Commit, Machine]:
    """Failures with what they are of."""
    return (
        select(Failure, Case, Commit, Machine)
        .select_from(Failure)
        .join(Case, Case.id == Failure.case_id)
        .join(Commit, Commit.id == Failure.commit_id)
        .join(Machine, Machine.id == Failure.machine_id)
    )


async def pooled_cells(session: AsyncSession, rows: Sequence[MeasuredPoint]) -> list[MeasuredCell]:
    """One cell per series and commit; the rows of one cell stand together, oldest report first.

    What many cells share (cases, commits, machines, reports) is read once each. Index: pk_case, pk_commit, pk_machine,
    pk_report.
    """
    cases = {row[0]: CaseFacts._make(row) for row in await _of_ids(session, _CASES, {row.case_id for row in rows})}
    commits = {commit.id: commit for commit in await commits_of_ids(session, {row.commit_id for row in rows})}
    machines = {
        row[0]: MachineFacts._make(row) for row in await _of_ids(session, _MACHINES, {r.machine_id for r in rows})
    }
    dirty = {row[0] for row in await _of_ids(session, _DIRTY, {row.report_id for row in rows})}
    cells = []
    for _, group in groupby(rows, key=itemgetter(0, 1)):
        points = list(group)
        alone = len(points) == 1
        spoken = points[0] if alone else speaker(points)
        cells.append(
            MeasuredCell(
                spoken.series_id,
                cases[spoken.case_id],
                machines[spoken.machine_id],
                commits[spoken.commit_id],
                spoken.variant,
                spoken.variant_kind,
                spoken.metric,
                spoken.unit,
                spoken.direction,
                spoken.exact,
                spoken.value if alone else pooled_value(points),
                point_spread(spoken) if alone else pooled_spread(points),
                spoken.baseline,
                spoken.log_ratio,
                spoken.low,
                spoken.high,
                spoken.n,
                spoken.outcome,
                spoken.quality,
                bool(dirty) and any(point.report_id in dirty for point in points),
                spoken.method,
                spoken.program_hash,
                spoken.report_id if alone else counting(points).report_id,
                (spoken.report_id,) if alone else tuple(point.report_id for point in points),
            )
        )
    return cells


_CASES = 'SELECT id, workload, label, params, dtype, device FROM "case" WHERE id = ANY (%(ids)s)'
_COMMITS: LiteralString = """
SELECT id, sha, title, author, branch, authored_at, ordered_at
  FROM commit
 WHERE id = ANY (%(ids)s)
 ORDER BY ordered_at, id
"""
_MACHINES = "SELECT id, name, fingerprint FROM machine WHERE id = ANY (%(ids)s)"
_DIRTY = "SELECT id FROM report WHERE id = ANY (%(ids)s) AND dirty"


async def _of_ids(session: AsyncSession, statement: LiteralString, ids: Collection[Any]) -> list[tuple[Any, ...]]:
    """Rows of which the first column is one of some keys."""
    return await statements.rows(session, statement, {"ids": list(ids)}) if ids else []


async def commits_of_ids(session: AsyncSession, ids: Collection[int]) -> Sequence[CommitFacts]:
    """Some commits, oldest first. Index: pk_commit."""
    return [CommitFacts._make(row) for row in await _of_ids(session, _COMMITS, ids)]


def commit_facts(commit: Commit) -> CommitFacts:
    """A commit as pages show it."""
    return CommitFacts(
        commit.id, commit.sha, commit.title, commit.author, commit.branch, commit.authored_at, commit.ordered_at
    )


def failed_case(row: Row[Failure, Case, Commit, Machine]) -> FailedCase:
    """A row of `select_failures`."""
    failure, case, commit, machine = row
    return FailedCase(
        case=CaseFacts(case.id, case.workload, case.label, case.params, case.dtype, case.device),
        machine=MachineFacts(machine.id, machine.name, machine.fingerprint),
        commit=commit_facts(commit),
        variant=failure.variant,
        kind=failure.kind,
        message=failure.message,
        report_id=failure.report_id,
    )


async def series_by_id(session: AsyncSession, series_id: SeriesId) -> Series:
    """A series. Index: pk_series."""
    found = await session.get(Series, series_id)
    if found is None:
        raise NotFoundError(f"There is no series {series_id}: GET /api/v1/series lists those there are.")
    return found
