"""Storing a report: one transaction, all of it or nothing, once whatever is repeated."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.chores.queries import defer_follow_up
from pullback_service.commits.queries import PlacedCommit, ToldCommit, ensure_commit, ensure_commits
from pullback_service.errors import ConflictError, FieldError, InvalidInputError
from pullback_service.ids import CaseId, JobId, MachineId, ProjectId
from pullback_service.machines.queries import ensure_machine
from pullback_service.projects.queries import ensure_project
from pullback_service.reports.copying import COPY_POINTS, lines
from pullback_service.reports.gathering import Parts
from pullback_service.reports.importing import read_upload
from pullback_service.reports.meeting import meet
from pullback_service.reports.models import Comparison, Failure, Report
from pullback_service.reports.reading import ReadReport, read_report
from pullback_service.reports.receiving import Stated
from pullback_service.reports.schemas import FORMAT
from pullback_service.series.keeping import KnownSeries, ensure_cases_and_series

# Samples compress to about a third at any level; the highest ones only take longer.
COMPRESSION_LEVEL = 3


@dataclass(frozen=True, slots=True)
class PreparedReport:
    """A report ready to be stored: everything that needs a processor and no database is done."""

    read: ReadReport
    body: bytes
    body_bytes: int
    document: bytes | None


@dataclass(frozen=True, slots=True)
class ForJob:
    """Whose result a report is, and whether it came too late to be the accepted one."""

    job_id: JobId
    attempt: int
    late: bool


@dataclass(frozen=True, slots=True)
class KeptReport:
    """A stored report and whether this upload stored it."""

    report: Report
    created: bool


def prepare(body: bytes) -> PreparedReport:
    """Parse, validate, take apart and compress a report of ours. Long for large ones: run it in a thread."""
    return _prepared(read_report(body), body)


def prepare_upload(body: bytes, stated: Stated, *, limit: int, now: datetime) -> PreparedReport:
    """The same for an upload of any format, compressed or not."""
    return _prepared(*read_upload(body, stated, limit=limit, now=now))


def _prepared(read: ReadReport, body: bytes) -> PreparedReport:
    document = None if read.made is None else zlib.compress(read.made, COMPRESSION_LEVEL)
    return PreparedReport(read, zlib.compress(body, COMPRESSION_LEVEL), len(body), document)


async def keep(
    session: AsyncSession, prepared: PreparedReport, idempotency_key: str | None, *, for_job: ForJob | None = None
) -> KeptReport:
    """Store a report, or find that it is stored. The same key with another body is a conflict."""
    head = prepared.read.head
    key = idempotency_key or str(head.id)
    met = await meet(session, head, key)
    project_id = met.project_id or ProjectId((await ensure_project(session, head.project)).id)
    if met.stored:
        known = await _find(session, project_id, head.id, key)
        if known is not None:
            return await _replay(session, known, prepared, key)
    # Uncommitted changes are no commit's: such an upload is kept, and is on no history. What a job found instead of its
    # commit (files without git) is all that machine has, and is marked wherever it is shown.
    on_history = not head.commit.dirty or for_job is not None
    machine = head.machine
    machine_id = met.machine_id or await ensure_machine(session, machine.fingerprint, machine.name, machine.facts)
    commit = await ensure_commit(
        session,
        project_id,
        ToldCommit(
            sha=head.commit.sha,
            parents=head.commit.parents,
            branch=head.commit.branch,
            author=head.commit.author,
            authored_at=head.commit.authored_at,
            title=head.commit.title,
        ),
    )
    report = Report(
        id=head.id,
        project_id=project_id,
        commit_id=commit.id,
        machine_id=machine_id,
        job_id=for_job.job_id if for_job else None,
        attempt=for_job.attempt if for_job else None,
        status="late" if for_job and for_job.late else "accepted",
        idempotency_key=key,
        digest=prepared.read.digest,
        body=prepared.body,
        body_bytes=prepared.body_bytes,
        document=prepared.document,
        format=prepared.read.format,
        version=head.version,
        suite=head.harness.suite,
        quality=head.harness.quality,
        dirty=head.commit.dirty,
        cases=prepared.read.parts.measured_cases,
        points=len(prepared.read.parts.points) if on_history else 0,
        failures=len(prepared.read.parts.failures) if on_history else 0,
        started_at=head.started_at,
        duration_s=head.duration_s,
    )
    if not await _insert(session, report):  # somebody stored the same report between our looking and our writing
        known = await _find(session, project_id, head.id, key)
        if known is None and for_job is not None:
            raise ConflictError(f"Job {for_job.job_id} has an accepted result already.")
        if known is None:  # another project's, which this caller does not see
            raise ConflictError(f"Report id {head.id} is taken: a new report needs a new id.")
        return await _replay(session, known, prepared, key)
    if on_history:
        await _keep_parts(session, prepared, project_id, machine_id, commit)
    await defer_follow_up(session, project_id, report.id)
    return KeptReport(report, created=True)


_STORED = tuple(name for name in Report.__table__.c.keys() if name not in {"received_at", "followed_up_at"})  # noqa: SIM118 - not a dictionary
_INSERT = (
    f"INSERT INTO report ({', '.join(_STORED)}) VALUES ({', '.join(f'%({name})s' for name in _STORED)}) "  # noqa: S608 - names of columns
    "ON CONFLICT DO NOTHING RETURNING true"
)


async def _insert(session: AsyncSession, report: Report) -> bool:
    """Whether the report is stored now; it is not where its id, its key or its job's result is taken."""
    values = {name: getattr(report, name) for name in _STORED}
    return await statements.row(session, _INSERT, values) is not None


async def try_out(session: AsyncSession, prepared: PreparedReport, idempotency_key: str | None) -> KeptReport:
    """Store a report as `keep` does, with every check of the database, and take all of it back."""
    async with session.begin_nested() as attempt:
        kept = await keep(session, prepared, idempotency_key)
        if kept.report in session:
            session.expunge(kept.report)
        await attempt.rollback()
    return kept


async def _find(session: AsyncSession, project_id: ProjectId, report_id: UUID, key: str) -> Report | None:
    """The report with this id or this key. Index: pk_report, uq_report_project_id_idempotency_key."""
    rows = (
        await session.scalars(
            select(Report).where(
                or_(Report.id == report_id, (Report.project_id == project_id) & (Report.idempotency_key == key))
            )
        )
    ).all()
    # The key decides; the id is the key of those who send none.
    return max(rows, key=lambda report: report.project_id == project_id and report.idempotency_key == key, default=None)


async def _replay(session: AsyncSession, known: Report, prepared: PreparedReport, key: str) -> KeptReport:
    """The stored report where this upload repeats it; else a conflict, with what differs and the remedy."""
    if known.digest == prepared.read.digest:
        return KeptReport(known, created=False)
    which = f"Idempotency-Key {key!r}" if known.idempotency_key == key else f"report id {prepared.read.head.id}"
    if prepared.read.format == FORMAT:
        raise ConflictError(
            f"Another report was stored under {which} (report {known.id}): a new report needs a new id and a new key."
        )
    # Files of tools have no id but the one that is made of them: only a key can be taken.
    same = await session.scalar(select(Report.body == prepared.body).where(Report.id == known.id))  # Index: pk_report
    what = "This file was stored with other parameters" if same else "Another file was stored"
    raise ConflictError(f"{what} under {which} (report {known.id}): send a new Idempotency-Key, or none.")


async def _keep_parts(
    session: AsyncSession,
    prepared: PreparedReport,
    project_id: ProjectId,
    machine_id: MachineId,
    commit: PlacedCommit,
) -> None:
    parts, report_id = prepared.read.parts, prepared.read.head.id
    wanted = {point.series.key: point.series for point in parts.points}
    case_ids, series = await ensure_cases_and_series(session, project_id, machine_id, parts.cases, wanted)
    _refuse_other_units(parts, series)
    await _copy_points(session, prepared, series, commit)
    if parts.failures:
        await session.execute(
            insert(Failure),
            [
                {
                    "report_id": report_id,
                    "case_id": case_ids[failure.case],
                    "commit_id": commit.id,
                    "machine_id": machine_id,
                    "ordered_at": commit.ordered_at,
                    "variant": failure.variant,
                    "kind": failure.kind,
                    "message": failure.message,
                }
                for failure in parts.failures
            ],
        )
    if parts.comparisons:
        await _keep_comparisons(session, prepared, project_id, machine_id, case_ids)


def _refuse_other_units(parts: Parts, series: Mapping[tuple[bytes, str, str], KnownSeries]) -> None:
    for point in parts.points:
        known = series[point.series.key]
        if (known.unit, known.direction) != (point.series.unit, point.series.direction):
            message = (
                f"{point.series.metric} of this series is in {known.unit} ({known.direction} is better), "
                f"not in {point.series.unit} ({point.series.direction}): convert it, or name the metric differently"
            )
            raise InvalidInputError(f"{point.path}: {message}.", errors=[FieldError(path=point.path, message=message)])


async def _copy_points(
    session: AsyncSession,
    prepared: PreparedReport,
    series: Mapping[tuple[bytes, str, str], KnownSeries],
    commit: PlacedCommit,
) -> None:
    head, points = prepared.read.head, prepared.read.parts.points
    pieces = lines(
        [series[point.series.key].id for point in points],
        [point.ending for point in points],
        commit=commit.id,
        report=head.id,
        ordered_at=commit.ordered_at,
        quality=head.harness.quality,
    )
    driver = await statements.driver_of(session)
    async with driver.cursor() as cursor, cursor.copy(COPY_POINTS) as copy:
        for piece in pieces:
            await copy.write(piece)


async def _keep_comparisons(
    session: AsyncSession,
    prepared: PreparedReport,
    project_id: ProjectId,
    machine_id: MachineId,
    case_ids: Mapping[bytes, CaseId],
) -> None:
    stated = [(part.case, part.document) for part in prepared.read.parts.comparisons]
    commits = await ensure_commits(
        session, project_id, (sha for _, document in stated for sha in (document.reference, document.candidate))
    )
    await session.execute(
        insert(Comparison),
        [
            {
                "report_id": prepared.read.head.id,
                "case_id": case_ids[case],
                "machine_id": machine_id,
                "reference_id": commits[document.reference],
                "candidate_id": commits[document.candidate],
                "variant": document.variant,
                "metric": document.metric,
                "log_ratio": document.log_ratio,
                "low": document.low,
                "high": document.high,
                "n": document.n,
                "outcome": document.outcome,
                "group_log_ratios": document.log_ratios,
                "claim": document.claim,
                "margin": document.margin,
                "provisional": document.margin_is_provisional,
            }
            for case, document in stated
        ],
    )
