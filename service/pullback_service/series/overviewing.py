"""The overview's data: the cases, the state of each, lines of some series, and recent changes.

Every function takes as long as there are cases or series in its answer, however many commits there are behind them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, exists, or_, select, true
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.among import among
from pullback_service.commits import history
from pullback_service.ids import MachineId, ProjectId
from pullback_service.models.commits import Commit
from pullback_service.models.reports import Failure, Report
from pullback_service.models.series import Case, Point, Series
from pullback_service.readings.reading import COLUMNS, WIDTH, Reading
from pullback_service.series.choosing import says
from pullback_service.series.queries import (
    MOST_FAILURES,
    CommitFacts,
    FailedCase,
    commit_facts,
    failed_case,
    select_failures,
)

MOST_CASES = 5_000
UPLOADS_OF_A_SUITE = 5
"""A suite may come in parts: its cases are those of its newest uploads."""
RECENT_UPLOADS = 100


@dataclass(frozen=True, slots=True)
class CaseChoice:
    """A choice of cases; None is any. `text` is words that each begin a word of the case's label."""

    text: str | None = None
    suite: str | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A case by its names."""

    id: int
    workload: str
    label: str


@dataclass(frozen=True, slots=True)
class KnownMetric:
    """A metric that a machine measured."""

    name: str
    unit: str
    direction: str
    exact: bool


class NewestReading(NamedTuple):
    """A series at its newest commit."""

    case_id: int
    variant: str
    reading: Reading


class LineReading(NamedTuple):
    """A reading and the series it is of, as far as lines are told apart by it."""

    case: KnownCase
    variant: str
    metric: KnownMetric
    reading: Reading


async def measured_commits(
    session: AsyncSession,
    project_id: ProjectId,
    machine_id: MachineId,
    *,
    limit: int,
    until: CommitFacts | None = None,
) -> Sequence[CommitFacts]:
    """The newest commits that a machine measured, or the newest `until` one of them, oldest first.

    Index: ix_commit_history, ix_report_commit_id.
    """
    newest = await session.scalars(_select_measured(project_id, machine_id, limit, until))
    return [commit_facts(commit) for commit in reversed(newest.all())]


def _select_measured(
    project_id: ProjectId, machine_id: MachineId, limit: int, until: CommitFacts | None = None
) -> Select[Commit]:
    measured = exists().where(
        Report.commit_id == Commit.id, Report.machine_id == machine_id, or_(Report.points > 0, Report.failures > 0)
    )
    present = true() if until is None else history.until(Commit, until.ordered_at, until.id)
    return (
        select(Commit)
        .where(Commit.project_id == project_id, measured, present)
        .order_by(*history.newest_first(Commit))
        .limit(limit)
    )


class NewestCommits(NamedTuple):
    """The newest commits that a machine measured, oldest first, and what tells its results from those before its newest upload."""

    commits: Sequence[CommitFacts]
    upload: tuple[datetime, UUID] | None


async def newest_commits(
    session: AsyncSession, project_id: ProjectId, machine_id: MachineId, *, limit: int
) -> NewestCommits:
    """As `measured_commits`, with the newest upload. Index: besides ix_report_machine."""
    upload = (
        select(Report.received_at, Report.id)
        .where(Report.project_id == project_id, Report.machine_id == machine_id)
        .order_by(Report.received_at.desc())
        .limit(1)
        .subquery("upload")
    )
    found = _select_measured(project_id, machine_id, limit).add_columns(*upload.c).join(upload, true())
    rows = (await session.execute(found)).all()
    return NewestCommits([commit_facts(row[0]) for row in reversed(rows)], (rows[0][1], rows[0][2]) if rows else None)


async def suites_of(session: AsyncSession, project_id: ProjectId, machine_id: MachineId) -> Sequence[str]:
    """Suites among the last uploads of a machine. Index: ix_report_machine."""
    uploads = (
        select(Report.suite)
        .where(Report.project_id == project_id, Report.machine_id == machine_id)
        .order_by(Report.received_at.desc())
        .limit(RECENT_UPLOADS)
        .subquery("uploads")
    )
    statement = select(uploads.c.suite).where(uploads.c.suite.is_not(None)).distinct().order_by(uploads.c.suite)
    return list(await session.scalars(statement))


async def devices_of(session: AsyncSession, project_id: ProjectId) -> Sequence[str]:
    """Devices of the project's cases. Index: ix_case_workload."""
    statement = select(Case.device).where(Case.project_id == project_id, Case.device.is_not(None)).distinct()
    return sorted(device for device in await session.scalars(statement) if device)


async def cases_of(
    session: AsyncSession, project_id: ProjectId, machine_id: MachineId, choice: CaseChoice
) -> Sequence[KnownCase]:
    """The chosen cases that a machine has measured or failed, by workload and then in the order of their first upload.

    Index: ix_case_workload, uq_series_case_id_variant_metric_machine_id, ix_failure_case_history; for a suite
    ix_report_machine, ix_point_report_id, ix_failure_report_id.
    """
    of_machine = exists().where(Series.case_id == Case.id, Series.machine_id == machine_id) | exists().where(
        Failure.case_id == Case.id, Failure.machine_id == machine_id
    )
    where: list[ColumnElement[bool]] = [Case.project_id == project_id, of_machine]
    if choice.device is not None:
        where.append(Case.device == choice.device)
    if choice.suite is not None:
        where.append(_in_suite(project_id, machine_id, choice.suite))
    told = says(choice.text, (Case.label,))
    if told is not None:
        where.append(told)
    rows = await session.execute(
        select(Case.id, Case.workload, Case.label).where(*where).order_by(Case.workload, Case.id).limit(MOST_CASES)
    )
    return [KnownCase(*row) for row in rows]


async def metrics_of(session: AsyncSession, machine_id: MachineId, case_ids: Collection[int]) -> Sequence[KnownMetric]:
    """The metrics of some cases. Index: uq_series_case_id_variant_metric_machine_id."""
    rows = await session.execute(
        select(Series.metric, Series.unit, Series.direction, Series.exact)
        .where(among(Series.case_id, case_ids), Series.machine_id == machine_id)
        .distinct()
    )
    return [KnownMetric(*row) for row in rows]


_STANDINGS: LiteralString = f"""
SELECT series.case_id, series.variant, {COLUMNS}
  FROM series, LATERAL (
       SELECT * FROM reading WHERE series_id = series.id ORDER BY ordered_at DESC, commit_id DESC LIMIT 1) reading
 WHERE series.case_id = ANY (%(cases)s::bigint[]) AND series.machine_id = %(machine)s AND series.metric = %(metric)s
 ORDER BY series.id
"""  # noqa: S608 - our own words


async def standings(
    session: AsyncSession, machine_id: MachineId, case_ids: Collection[int], metric: str
) -> Sequence[NewestReading]:
    """Every series of a metric at its newest commit.

    Index: uq_series_case_id_variant_metric_machine_id, then a probe of ix_reading_series_history for each series.
    """
    values = {"cases": statements.array_of(case_ids), "machine": machine_id, "metric": metric}
    rows = await statements.rows(session, _STANDINGS, values, binary=True)
    return [NewestReading(row[0], row[1], Reading.of(row[2:])) for row in rows]


_LINES: LiteralString = f"""
SELECT {COLUMNS}, "case".id, "case".workload, "case".label, series.variant, series.metric, series.unit, series.direction,
       series.exact
  FROM reading
  JOIN series ON series.id = reading.series_id
  JOIN "case" ON "case".id = series.case_id
 WHERE reading.series_id = ANY (%(series)s::bigint[]) AND reading.commit_id = ANY (%(commits)s::bigint[])
 ORDER BY reading.ordered_at, reading.commit_id, "case".id, series.variant, series.metric, series.id
"""  # noqa: S608 - our own words


async def lines_of(
    session: AsyncSession, series_ids: Collection[int], commit_ids: Collection[int]
) -> Sequence[LineReading]:
    """Some series at some commits. Index: pk_reading, pk_series, pk_case."""
    if not series_ids:
        return []
    values = {"series": statements.array_of(series_ids), "commits": statements.array_of(commit_ids)}
    found = []
    for row in await statements.rows(session, _LINES, values, binary=True):
        id_, workload, label, variant, *metric = row[WIDTH:]
        found.append(LineReading(KnownCase(id_, workload, label), variant, KnownMetric(*metric), Reading.of(row)))
    return found


async def failures_at(
    session: AsyncSession, machine_id: MachineId, commit_ids: Collection[int]
) -> Sequence[FailedCase]:
    """The failures at some commits on a machine, in the order of history. Index: ix_failure_commit_id."""
    rows = await session.execute(
        select_failures()
        .where(among(Failure.commit_id, commit_ids), Failure.machine_id == machine_id)
        .order_by(*history.oldest_first(Failure), Failure.id)
        .limit(MOST_FAILURES)
    )
    return [failed_case(row) for row in rows.all()]


async def speaking_series(session: AsyncSession, machine_id: MachineId, case_ids: Collection[int]) -> Sequence[int]:
    """A series of every variant of some cases: of its time, else of whatever comes first.

    Index: uq_series_case_id_variant_metric_machine_id.
    """
    return list(
        await session.scalars(
            select(Series.id)
            .ext(distinct_on(Series.case_id, Series.variant))
            .where(among(Series.case_id, case_ids), Series.machine_id == machine_id)
            .order_by(Series.case_id, Series.variant, Series.metric != "time", Series.metric)
        )
    )


def _in_suite(project_id: ProjectId, machine_id: MachineId, suite: str) -> ColumnElement[bool]:
    uploads = (
        select(Report.id)
        .where(Report.project_id == project_id, Report.machine_id == machine_id, Report.suite == suite)
        .order_by(Report.received_at.desc())
        .limit(UPLOADS_OF_A_SUITE)
    )
    measured = select(Series.case_id).join(Point, Point.series_id == Series.id).where(Point.report_id.in_(uploads))
    failed = select(Failure.case_id).where(Failure.report_id.in_(uploads))
    return or_(Case.id.in_(measured), Case.id.in_(failed))
