"""The overview's data: the cases, the state of each, lines of some series, and recent changes.

Every function takes as long as there are cases or series in its answer, however many commits there are behind them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, exists, or_, select

from pullback_service import statements
from pullback_service.ids import MachineId, ProjectId
from pullback_service.models.reports import Failure, Report
from pullback_service.models.series import Case, Point, Series
from pullback_service.readings.reading import COLUMNS, WIDTH, Reading
from pullback_service.series.filters import says
from pullback_service.series.queries import (
    COMMIT_COLUMNS,
    FAILURE_WIDTH,
    FAILURES,
    MOST_FAILURES,
    CommitFacts,
    FailedCase,
    failed_cases,
)
from pullback_service.statements import Query, Rows

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


_MEASURED: LiteralString = f"""
SELECT {COMMIT_COLUMNS}
  FROM commit
 WHERE commit.project_id = %(project)s AND {{until}}
   AND EXISTS (SELECT FROM report WHERE commit_id = commit.id AND machine_id = %(machine)s AND (points > 0 OR failures > 0))
 ORDER BY commit.ordered_at DESC, commit.id DESC
 LIMIT %(limit)s
"""  # noqa: S608 - our own words
_NEWEST: LiteralString = _MEASURED.replace("{until}", "true")
_UNTIL: LiteralString = _MEASURED.replace("{until}", "(commit.ordered_at, commit.id) <= (%(ordered_at)s, %(commit)s)")
_PRESENT: LiteralString = f"""
SELECT newest.*, upload.received_at, upload.id AS upload_id
  FROM ({_NEWEST}) newest, (
       SELECT received_at, id
         FROM report
        WHERE project_id = %(project)s AND machine_id = %(machine)s
        ORDER BY received_at DESC
        LIMIT 1) upload
 ORDER BY newest.ordered_at, newest.id
"""  # noqa: S608 - our own words


def measured_last(
    project_id: ProjectId, machine_id: MachineId, *, limit: int, until: CommitFacts | None = None
) -> Query[list[CommitFacts]]:
    """The newest commits that a machine measured, or the newest `until` one of them, newest first.

    Index: ix_commit_history, ix_report_commit_id.
    """
    values: dict[str, object] = {"project": project_id, "machine": machine_id, "limit": limit}
    if until is not None:
        values |= {"ordered_at": until.ordered_at, "commit": until.id}
    return Query(_NEWEST if until is None else _UNTIL, values, _commits, width=len(CommitFacts._fields))


def _commits(rows: Rows) -> list[CommitFacts]:
    return [*map(CommitFacts._make, rows)]


class NewestCommits(NamedTuple):
    """The newest commits that a machine measured, oldest first, and what tells its results from those before its newest upload."""

    commits: Sequence[CommitFacts]
    upload: tuple[datetime, UUID] | None


def newest_commits(project_id: ProjectId, machine_id: MachineId, *, limit: int) -> Query[NewestCommits]:
    """Like `measured_last`, oldest first, with the newest upload. Index: also ix_report_machine."""

    def read(rows: Rows) -> NewestCommits:
        found = list(rows)
        return NewestCommits([CommitFacts._make(row[:-2]) for row in found], found[0][-2:] if found else None)

    values = {"project": project_id, "machine": machine_id, "limit": limit}
    return Query(_PRESENT, values, read, width=len(CommitFacts._fields) + 2)


_SUITES: LiteralString = """
SELECT DISTINCT suite
  FROM (SELECT suite
          FROM report
         WHERE project_id = %(project)s AND machine_id = %(machine)s
         ORDER BY received_at DESC
         LIMIT %(last)s) uploads
 WHERE suite IS NOT NULL
 ORDER BY suite
"""
_DEVICES: LiteralString = """SELECT DISTINCT device FROM "case" WHERE project_id = %(project)s AND device <> ''"""


def suites_of(project_id: ProjectId, machine_id: MachineId) -> Query[tuple[str, ...]]:
    """Suites among the last uploads of a machine. Index: ix_report_machine."""
    values = {"project": project_id, "machine": machine_id, "last": RECENT_UPLOADS}
    return Query(_SUITES, values, lambda rows: tuple(suite for (suite,) in rows), width=1)


def devices_of(project_id: ProjectId) -> Query[tuple[str, ...]]:
    """Devices of the project's cases. Index: ix_case_workload."""
    return Query(_DEVICES, {"project": project_id}, lambda rows: tuple(sorted(device for (device,) in rows)), width=1)


def cases_of(project_id: ProjectId, machine_id: MachineId, choice: CaseChoice) -> Query[Sequence[KnownCase]]:
    """The chosen cases that a machine has measured or failed, by workload and then by label, smaller sizes first.

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
    condition = says(choice.text, (Case.label,))
    if condition is not None:
        where.append(condition)
    statement, values = statements.text_of(
        select(Case.id, Case.workload, Case.label)
        .where(*where)
        .order_by(Case.workload, Case.natural_label)
        .limit(MOST_CASES)
    )
    return Query(statement, values, lambda rows: [KnownCase(*row) for row in rows], width=3)


_METRICS: LiteralString = """
SELECT DISTINCT metric, unit, direction, exact
  FROM series
 WHERE case_id = ANY (%(cases)s::bigint[]) AND machine_id = %(machine)s
"""


def metrics_of(machine_id: MachineId, case_ids: Collection[int]) -> Query[Sequence[KnownMetric]]:
    """The metrics of some cases. Index: uq_series_case_id_variant_metric_machine_id."""
    values = {"cases": statements.array_of(case_ids), "machine": machine_id}
    return Query(_METRICS, values, lambda rows: [KnownMetric(*row) for row in rows], width=4)


_STANDINGS: LiteralString = f"""
SELECT series.case_id, series.variant, {COLUMNS}
  FROM unnest(%(cases)s::bigint[]) WITH ORDINALITY wanted (case_id, place)
  JOIN series ON series.case_id = wanted.case_id, LATERAL (
       SELECT * FROM reading WHERE series_id = series.id ORDER BY ordered_at DESC, commit_id DESC LIMIT 1) reading
 WHERE series.machine_id = %(machine)s AND series.metric = %(metric)s
 ORDER BY wanted.place, series.variant
"""  # noqa: S608 - our own words


def standings(machine_id: MachineId, case_ids: Collection[int], metric: str) -> Query[Sequence[NewestReading]]:
    """Every series of a metric at its newest commit.

    Index: uq_series_case_id_variant_metric_machine_id, then a probe of ix_reading_series_history for each series.
    """
    values = {"cases": statements.array_of(case_ids), "machine": machine_id, "metric": metric}
    return Query(_STANDINGS, values, _newest, width=WIDTH + 2)


def _newest(rows: Rows) -> Sequence[NewestReading]:
    return [NewestReading(row[0], row[1], Reading.of(row[2:])) for row in rows]


_LINES: LiteralString = f"""
SELECT {COLUMNS}, "case".id, "case".workload, "case".label, series.variant, series.metric, series.unit, series.direction,
       series.exact
  FROM reading
  JOIN series ON series.id = reading.series_id
  JOIN "case" ON "case".id = series.case_id
 WHERE reading.series_id = ANY (%(series)s::bigint[]) AND reading.commit_id = ANY (%(commits)s::bigint[])
 ORDER BY reading.ordered_at, reading.commit_id, "case".workload, "case".natural_label, series.variant, series.metric, series.id
"""  # noqa: S608 - our own words


def lines_at(series_ids: Collection[int], commit_ids: Collection[int]) -> Query[Sequence[LineReading]]:
    """Some series at some commits. Index: pk_reading, pk_series, pk_case."""
    values = {"series": statements.array_of(series_ids), "commits": statements.array_of(commit_ids)}
    return Query(_LINES, values, _lines, width=WIDTH + 8)


def _lines(rows: Rows) -> Sequence[LineReading]:
    results = []
    for row in rows:
        id_, workload, label, variant, *metric = row[WIDTH:]
        results.append(LineReading(KnownCase(id_, workload, label), variant, KnownMetric(*metric), Reading.of(row)))
    return results


_FAILURES_AT: LiteralString = f"""
{FAILURES}
 WHERE failure.commit_id = ANY (%(commits)s::bigint[]) AND failure.machine_id = %(machine)s
 ORDER BY failure.ordered_at, failure.commit_id, "case".workload, "case".natural_label, failure.variant NULLS FIRST,
          failure.report_id, failure.id
 LIMIT %(most)s
"""


def failures_at(machine_id: MachineId, commit_ids: Collection[int]) -> Query[Sequence[FailedCase]]:
    """The failures at some commits on a machine, in the order of history. Index: ix_failure_commit_id."""
    values = {"commits": statements.array_of(commit_ids), "machine": machine_id, "most": MOST_FAILURES}
    return Query(_FAILURES_AT, values, failed_cases, width=FAILURE_WIDTH)


_SPEAKING: LiteralString = """
SELECT DISTINCT ON (case_id, variant) id
  FROM series
 WHERE case_id = ANY (%(cases)s::bigint[]) AND machine_id = %(machine)s
 ORDER BY case_id, variant, metric <> 'time', metric
"""
_FAILED: LiteralString = """
ARRAY (SELECT DISTINCT case_id FROM failure WHERE commit_id = ANY (%(commits)s::bigint[]) AND machine_id = %(machine)s)
"""


def speaking_series(machine_id: MachineId, commits: LiteralString) -> Query[Any]:
    """A series of every variant of the cases that failed at given commits: of its time, else of whatever comes first.

    Index: ix_failure_commit_id, uq_series_case_id_variant_metric_machine_id.
    """
    return Query(_SPEAKING, {"machine": machine_id}, list).where(cases=_FAILED).where(commits=commits)


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
