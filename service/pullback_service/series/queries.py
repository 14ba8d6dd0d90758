"""Reading cases, series and readings. Pages and API share these; every function is bounded and names its index."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Select,
    Subquery,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    exists,
    lateral,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.background_threads import in_background
from pullback_service.commits import timeline
from pullback_service.errors import NotFoundError
from pullback_service.ids import MachineId, ProjectId, SeriesId
from pullback_service.models.commits import BranchCommit, Commit
from pullback_service.models.machines import Machine
from pullback_service.models.readings import StoredReading
from pullback_service.models.reports import Failure
from pullback_service.models.series import Case, Series
from pullback_service.readings.queries import several_reports
from pullback_service.readings.reading import COLUMN_NAMES, WIDTH, Reading
from pullback_service.statements import Query, Rows

MOST_MATRIX_POINTS = 50_000
MOST_FAILURES = 5_000
MOST_WORKLOADS = 1_000
LAST_UPLOADS = 20


COMMIT_COLUMNS: Final[LiteralString] = """
commit.id, commit.sha, commit.title, commit.author, commit.branch, commit.authored_at, commit.ordered_at
"""
"""The fields of `CommitFacts`."""


class CommitFacts(NamedTuple):
    """A commit as pages show it. `ordered_at` is its place in history; `authored_at` may not be known."""

    id: int
    sha: str
    title: str | None
    author: str | None
    branch: str | None
    authored_at: datetime | None
    ordered_at: datetime

    @property
    def place(self) -> tuple[datetime, int]:
        """Its place in history."""
        return self.ordered_at, self.id


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
    """A reading with what its series and its commit are called. `report_ids` are the reports behind it, oldest first."""

    case: CaseFacts
    machine: MachineFacts
    commit: CommitFacts
    variant: str
    variant_kind: str
    metric: str
    unit: str
    direction: str
    exact: bool
    reading: Reading
    report_ids: tuple[str, ...]


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
    uq_series_case_id_variant_metric_machine_id for some workloads), then one probe of ix_reading_series_history per series,
    on a branch with uq_branch_commit_branch_id_commit_id; ix_failure_case_history.
    """
    of = _MatrixFilter(machines is not None, workloads is not None, metric is not None, branch_id is not None)
    given = {
        "project": project_id,
        "machines": None if machines is None else [*machines],
        "workloads": None if workloads is None else [*workloads],
        "metric": metric,
        "branch": branch_id,
    }
    # By the driver, which reads thousands of rows in pieces: SQLAlchemy makes all of them objects at once.
    readings, failures = _matrix_readings(of), _matrix_failures(of)
    rows = await statements.rows(session, readings[0], {**readings[1], **given}, binary=True)
    return Matrix(
        cells=await _cells_of(session, rows[:MOST_MATRIX_POINTS]),
        failures=failed_cases(await statements.rows(session, failures[0], {**failures[1], **given}, binary=True)),
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
 ORDER BY newest DESC, machine.name, machine.fingerprint, machine.host
"""


_IS_MEASURED_HERE: LiteralString = """
SELECT EXISTS (SELECT FROM series WHERE project_id = %(project)s AND variant_kind <> 'external')
       OR NOT EXISTS (SELECT FROM series WHERE project_id = %(project)s)
"""


def machines_of(project_id: ProjectId) -> Query[Sequence[MeasuringMachine]]:
    """Machines with results of a project that was found, the one with the newest commit first. Index: ix_report_machine.

    Of each machine its last uploads are looked at, so that this takes as long as there are machines.
    """
    values = {"project": project_id, "last": LAST_UPLOADS}
    return Query(_MEASURING, values, lambda rows: [MeasuringMachine(*row) for row in rows], width=3)


def is_measured_here(project_id: ProjectId) -> Query[bool]:
    """True if a project has any series that Pullback itself measured, or none yet. Index: ix_series_project_id."""
    return Query(_IS_MEASURED_HERE, {"project": project_id}, lambda rows: any(is_it for (is_it,) in rows), width=1)


async def workloads(session: AsyncSession, project_id: ProjectId) -> Sequence[str]:
    """Names of the workloads of a project. Index: ix_case_workload."""
    statement = select(Case.workload).where(Case.project_id == project_id).distinct().order_by(Case.workload)
    return (await session.scalars(statement.limit(MOST_WORKLOADS))).all()


class _MatrixFilter(NamedTuple):
    """Filters of a matrix, by values with the same names in its statements; `branch` is an id."""

    machines: bool
    workloads: bool
    metric: bool
    branch: bool


# Made once each: building them anew took 7 ms of every page with a matrix, and left 1,700 objects in cycles.
@cache
def _matrix_readings(of: _MatrixFilter) -> tuple[LiteralString, Mapping[str, Any]]:
    """The readings of `latest_matrix`, as `_cells_of` takes them."""
    known = _series_of(of)
    if of.metric:
        known = known.where(Series.metric == bindparam("metric"))
    newest = _newest_commit_of_cases(known.subquery("known"), of)
    # Each series enters its own index: joined in one go, a planner may take all readings of the commits and filter them.
    there = lateral(
        select(*(_column(name) for name in COLUMN_NAMES))
        .where(StoredReading.series_id == Series.id, StoredReading.commit_id == newest.c.commit_id)
        .offset(0)
    )
    readings = (
        select(there, *(getattr(Series, name) for name in _OF_SERIES))
        .select_from(newest)
        .join(Series, and_(Series.case_id == newest.c.case_id, Series.machine_id == newest.c.machine_id))
        .join(there, true())
        .order_by(Series.case_id, Series.variant, Series.metric, Series.machine_id)
        .limit(MOST_MATRIX_POINTS + 1)
    )
    return statements.text_of(readings.where(Series.metric == bindparam("metric")) if of.metric else readings)


def _column(name: str) -> ColumnElement[Any]:
    column: ColumnElement[Any] = getattr(StoredReading, name)
    return cast(column, Text).label(name) if name == "report_id" else column


@cache
def _matrix_failures(of: _MatrixFilter) -> tuple[LiteralString, Mapping[str, Any]]:
    """The failures of `latest_matrix`: they are of no metric."""
    # Few cases have any, so that few series are looked at for them.
    failed = exists().where(Failure.case_id == Series.case_id, Failure.machine_id == Series.machine_id)
    newest = _newest_commit_of_cases(_series_of(of).where(failed).subquery("failing"), of)
    failures = (
        select(*_OF_FAILURE)
        .select_from(Failure)
        .join(Case, Case.id == Failure.case_id)
        .join(Commit, Commit.id == Failure.commit_id)
        .join(Machine, Machine.id == Failure.machine_id)
        .join(
            newest,
            and_(newest.c.case_id == Failure.case_id, newest.c.machine_id == Failure.machine_id),
            isouter=True,
        )
        .where(
            Case.project_id == bindparam("project"),
            newest.c.commit_id.is_(None) | timeline.since(Failure, newest.c.ordered_at, newest.c.commit_id),
        )
        .order_by(
            *(*timeline.newest_first(Failure), Case.workload, Case.natural_label, Failure.variant.nulls_first()),
            *(Machine.name, Machine.fingerprint, Machine.host, Failure.report_id, Failure.id),
        )
        .limit(MOST_FAILURES)
    )
    if of.machines:
        failures = failures.where(Failure.machine_id == any_(bindparam("machines", type_=ARRAY(BigInteger))))
    if of.workloads:
        failures = failures.where(Case.workload == any_(bindparam("workloads", type_=ARRAY(Text))))
    if of.branch:
        first_parents = select(BranchCommit.commit_id).where(BranchCommit.branch_id == bindparam("branch"))
        failures = failures.where(Failure.commit_id.in_(first_parents))
    return statements.text_of(failures)


def _series_of(of: _MatrixFilter) -> Select[int, int, int]:
    """The series of a matrix, of any metric."""
    series = select(Series.id, Series.case_id, Series.machine_id).where(Series.project_id == bindparam("project"))
    if of.machines:
        series = series.where(Series.machine_id == any_(bindparam("machines", type_=ARRAY(BigInteger))))
    if of.workloads:
        of_workloads = Case.workload == any_(bindparam("workloads", type_=ARRAY(Text)))
        series = series.join(Case, Case.id == Series.case_id).where(of_workloads)
    return series


def _newest_commit_of_cases(known: Subquery, of: _MatrixFilter) -> Subquery:
    """(case_id, machine_id, ordered_at, commit_id) of the newest commit with a reading, for the given series."""
    newest = (
        select(StoredReading.ordered_at, StoredReading.commit_id)
        .where(StoredReading.series_id == known.c.id)
        .order_by(*timeline.newest_first(StoredReading))
        .limit(1)
    )
    if of.branch:
        newest = newest.join(
            BranchCommit,
            and_(BranchCommit.branch_id == bindparam("branch"), BranchCommit.commit_id == StoredReading.commit_id),
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


_OF_SERIES = ("case_id", "machine_id", "variant", "variant_kind", "metric", "unit", "direction", "exact")


FAILURES: Final[LiteralString] = f"""
SELECT failure.variant, failure.kind, failure.message, failure.report_id, "case".id, "case".workload, "case".label,
       "case".params, "case".dtype, "case".device, machine.id, machine.name, machine.fingerprint, {COMMIT_COLUMNS}
  FROM failure
  JOIN "case" ON "case".id = failure.case_id
  JOIN commit ON commit.id = failure.commit_id
  JOIN machine ON machine.id = failure.machine_id
"""  # noqa: S608 - our own words
"""Failures with what they are of, as `failed_cases` reads them."""
FAILURE_WIDTH: Final = 20
_OF_FAILURE = (
    *(Failure.variant, Failure.kind, Failure.message, Failure.report_id),
    *(getattr(Case, name) for name in CaseFacts._fields),
    *(getattr(Machine, name) for name in MachineFacts._fields),
    *(getattr(Commit, name) for name in CommitFacts._fields),
)


def failed_cases(rows: Rows) -> list[FailedCase]:
    """Rows of `FAILURES`."""
    return [
        FailedCase(CaseFacts._make(row[4:10]), MachineFacts._make(row[10:13]), CommitFacts._make(row[13:]), *row[:4])
        for row in rows
    ]


async def _cells_of(session: AsyncSession, rows: Sequence[tuple[Any, ...]]) -> Sequence[MeasuredCell]:
    """Readings with the columns of their series, as cells in the order of their names.

    What many cells share (cases, commits, machines) is read once each. Index: pk_case, pk_commit, pk_machine; as
    `several_reports`.
    """

    def ids_in() -> tuple[Sequence[Reading], set[int], set[int], set[int], Sequence[tuple[int, int]]]:
        readings = [*map(Reading.of, rows)]
        cases, machines = {row[WIDTH] for row in rows}, {row[WIDTH + 1] for row in rows}
        several = [reading[:2] for reading in readings if reading.reports > 1]
        return readings, cases, machines, {reading.commit_id for reading in readings}, several

    if not rows:
        return []
    readings, case_ids, machine_ids, commit_ids, several = await in_background(ids_in)
    cases = await statements.answer(session, cases_called(case_ids))
    commits = {commit.id: commit for commit in await commits_of_ids(session, commit_ids)}
    machines = await statements.answer(session, machines_called(machine_ids))
    reports = await statements.answer(session, several_reports(several)) if several else {}

    def cells() -> Sequence[MeasuredCell]:
        made = []
        for reading, row in zip(readings, rows, strict=True):
            case_id, machine_id, variant, kind, metric, unit, direction, exact = row[WIDTH:]
            case, machine, commit = cases[case_id], machines[machine_id], commits[reading.commit_id]
            behind = reports.get(reading[:2], (reading.report_id,))
            made.append(
                MeasuredCell(case, machine, commit, variant, kind, metric, unit, direction, exact, reading, behind)
            )
        case_places, machine_places = ({id_: place for place, id_ in enumerate(of)} for of in (cases, machines))
        return sorted(
            made,
            key=lambda cell: (case_places[cell.case.id], cell.variant, cell.metric, machine_places[cell.machine.id]),
        )

    return await in_background(cells)


_CASES: LiteralString = """
SELECT id, workload, label, params, dtype, device
  FROM "case"
 WHERE id = ANY (%(ids)s::bigint[])
 ORDER BY workload, natural_label
"""
_COMMITS: LiteralString = f"""
SELECT {COMMIT_COLUMNS}
  FROM commit
 WHERE id = ANY (%(ids)s::bigint[])
 ORDER BY ordered_at, id
"""  # noqa: S608 - our own words
_MACHINES: LiteralString = """
SELECT id, name, fingerprint FROM machine WHERE id = ANY (%(ids)s::bigint[]) ORDER BY name, fingerprint, host
"""


def cases_called(ids: Collection[int]) -> Query[Mapping[int, CaseFacts]]:
    """Some cases by their ids, in the order of their names. Index: pk_case."""
    values = {"ids": statements.array_of(ids)}
    return Query(_CASES, values, lambda rows: {row[0]: CaseFacts._make(row) for row in rows}, width=6)


def machines_called(ids: Collection[int]) -> Query[Mapping[int, MachineFacts]]:
    """Some machines by their ids, in the order of their names. Index: pk_machine."""
    values = {"ids": statements.array_of(ids)}
    return Query(_MACHINES, values, lambda rows: {row[0]: MachineFacts._make(row) for row in rows}, width=3)


async def commits_of_ids(session: AsyncSession, ids: Collection[int]) -> Sequence[CommitFacts]:
    """Some commits, oldest first. Index: pk_commit."""
    return await statements.answer(session, commits_called(ids)) if ids else []


def commits_called(ids: Collection[int]) -> Query[Sequence[CommitFacts]]:
    """The same as a query."""
    return Query(_COMMITS, {"ids": statements.array_of(ids)}, _commits, width=len(CommitFacts._fields))


def _commits(rows: Rows) -> Sequence[CommitFacts]:
    return [*map(CommitFacts._make, rows)]


def commit_facts(commit: Commit) -> CommitFacts:
    """A commit as pages show it."""
    return CommitFacts(
        commit.id, commit.sha, commit.title, commit.author, commit.branch, commit.authored_at, commit.ordered_at
    )


async def series_by_id(session: AsyncSession, series_id: SeriesId) -> Series:
    """A series. Index: pk_series."""
    row = await session.get(Series, series_id)
    if row is None:
        raise NotFoundError(f"There is no series {series_id}: GET /api/v1/series lists them.")
    return row
