"""Storing a report: one transaction, all of it or nothing, once whatever is repeated."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Self
from uuid import UUID

from sqlalchemy import or_, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.chores.queries import defer_follow_up
from pullback_service.commits.queries import PlacedCommit, ToldCommit, ensure_commits, ensure_told
from pullback_service.errors import ConflictError
from pullback_service.ids import CaseId, JobId, MachineId, ProjectId
from pullback_service.machines.queries import ensure_machine
from pullback_service.projects.queries import ensure_project
from pullback_service.reports.copying import COPY_POINTS, in_pieces, lines
from pullback_service.reports.gathering import Parts
from pullback_service.reports.importing import read_upload
from pullback_service.reports.meeting import meet
from pullback_service.reports.models import Comparison, Failure, Report
from pullback_service.reports.parts import refuse_part
from pullback_service.reports.reading import ReadReport, read_report
from pullback_service.reports.schemas import FORMAT, CommitDocument, ReportHead
from pullback_service.reports.stated import Stated
from pullback_service.series.keeping import KnownSeries, ensure_cases_and_series

# Samples compress to about a quarter at any level; others than the first take twice as long, or more.
COMPRESSION_LEVEL = 1


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
class Upload:
    """A report to be stored once, whatever is repeated: under its `key`. `for_job` says whose result it is."""

    prepared: PreparedReport
    key: str
    for_job: ForJob | None = None

    @classmethod
    def of(cls, prepared: PreparedReport, idempotency_key: str | None, for_job: ForJob | None = None) -> Self:
        """An upload; the key of those who send none is the id of the report."""
        return cls(prepared, idempotency_key or str(prepared.read.head.id), for_job)

    @property
    def head(self) -> ReportHead:
        """What the report says beside its measurements."""
        return self.prepared.read.head

    @property
    def parts(self) -> Parts:
        """What is stored of the measurements."""
        return self.prepared.read.parts

    @property
    def is_on_history(self) -> bool:
        """Whether it speaks of a commit. Uncommitted changes are no commit's: such an upload is kept, and is on no history.

        What a job found instead of its commit (files without git) is all that machine has, and is marked wherever it
        is shown.
        """
        return not self.head.commit.dirty or self.for_job is not None


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


async def keep(session: AsyncSession, upload: Upload) -> KeptReport:
    """Store a report, or find that it is stored. The same key with another body is a conflict."""
    return (await keep_together(session, [upload]))[0]


async def keep_together(session: AsyncSession, uploads: Sequence[Upload]) -> list[KeptReport]:
    """Store reports of one project, asking once for what all of them need; no two have one id, or one key.

    Whatever is wrong with one of them is raised, and takes the others with it.
    """
    met = await meet(session, uploads[0].head.project, [(upload.head, upload.key) for upload in uploads])
    project_id = met[0].project_id or ProjectId((await ensure_project(session, uploads[0].head.project)).id)
    kept: dict[str, KeptReport] = {}
    for upload, there in zip(uploads, met, strict=True):
        if there.stored and (known := await _find(session, project_id, upload)) is not None:
            kept[upload.key] = await _replay(session, known, upload)
    new = [upload for upload in uploads if upload.key not in kept]
    if new:
        machines = {upload.key: there.machine_id for upload, there in zip(uploads, met, strict=True)}
        kept |= await _keep_new(session, project_id, await _place(session, project_id, new, machines))
    return [kept[upload.key] for upload in uploads]


def _told_by(commit: CommitDocument) -> ToldCommit:
    return ToldCommit(commit.sha, tuple(commit.parents), commit.branch, commit.author, commit.authored_at, commit.title)


@dataclass(frozen=True, slots=True)
class _Placed:
    """An upload, and where it belongs."""

    upload: Upload
    machine_id: MachineId
    commit: PlacedCommit


async def _place(
    session: AsyncSession, project_id: ProjectId, uploads: Sequence[Upload], met: Mapping[str, MachineId | None]
) -> list[_Placed]:
    """Uploads with their machines and commits, made where they are missing. Machines `met` by key need no writing."""
    machines: dict[str, MachineId] = {}
    for upload in sorted(uploads, key=lambda upload: upload.head.machine.fingerprint):  # in one order for everybody
        machine = upload.head.machine
        machines[upload.key] = met[upload.key] or await ensure_machine(
            session, machine.fingerprint, machine.name, machine.facts
        )
    commits = await ensure_told(session, project_id, [_told_by(upload.head.commit) for upload in uploads])
    return [_Placed(upload, machines[upload.key], commits[upload.head.commit.sha]) for upload in uploads]


async def _keep_new(session: AsyncSession, project_id: ProjectId, placed: Sequence[_Placed]) -> dict[str, KeptReport]:
    """What is kept under each key."""
    reports = {one.upload.key: _report_of(project_id, one) for one in placed}
    stored = await _insert(session, reports.values())
    kept = {key: KeptReport(report, created=True) for key, report in reports.items() if report.id in stored}
    for one in placed:
        if one.upload.key not in kept:  # somebody stored the same report between our looking and our writing
            kept[one.upload.key] = await _stored_meanwhile(session, project_id, one.upload)
    fresh = [one for one in placed if kept[one.upload.key].created]
    if fresh:
        await _keep_parts(session, project_id, [one for one in fresh if one.upload.is_on_history])
        await defer_follow_up(session, project_id, fresh[0].upload.head.id)
    return kept


def _report_of(project_id: ProjectId, placed: _Placed) -> Report:
    upload, head, prepared = placed.upload, placed.upload.head, placed.upload.prepared
    return Report(
        id=head.id,
        project_id=project_id,
        commit_id=placed.commit.id,
        machine_id=placed.machine_id,
        job_id=upload.for_job.job_id if upload.for_job else None,
        attempt=upload.for_job.attempt if upload.for_job else None,
        status="late" if upload.for_job and upload.for_job.late else "accepted",
        idempotency_key=upload.key,
        digest=prepared.read.digest,
        body=prepared.body,
        body_bytes=prepared.body_bytes,
        document=prepared.document,
        format=prepared.read.format,
        version=head.version,
        suite=head.harness.suite,
        quality=head.harness.quality,
        dirty=head.commit.dirty,
        cases=upload.parts.measured_cases,
        points=len(upload.parts.points) if upload.is_on_history else 0,
        failures=len(upload.parts.failures) if upload.is_on_history else 0,
        started_at=head.started_at,
        duration_s=head.duration_s,
    )


_STORED = {
    name: column.type.compile(postgresql.dialect())  # type: ignore[no-untyped-call] # SQLAlchemy leaves its dialects untyped
    for name, column in Report.__table__.c.items()
    if name not in {"received_at", "followed_up_at", "rolled_up_at"}
}
# Arrays in binary: as text a body takes twice its bytes.
_INSERT = (
    f"INSERT INTO report ({', '.join(_STORED)}) "  # noqa: S608 - names of columns
    f"SELECT * FROM unnest({', '.join(f'%({name})b::{type_}[]' for name, type_ in _STORED.items())}) "
    "ON CONFLICT DO NOTHING RETURNING id"
)


async def _insert(session: AsyncSession, reports: Iterable[Report]) -> set[UUID]:
    """The ids of those that are stored now; one is not where its id, its key or its job's result is taken.

    Rows go in one order for everybody, so that two who store the same reports never wait for each other in a circle.
    """
    ordered = sorted(reports, key=lambda report: report.id)
    values = {name: [getattr(report, name) for report in ordered] for name in _STORED}
    return {row[0] for row in await statements.rows(session, _INSERT, values)}


async def _stored_meanwhile(session: AsyncSession, project_id: ProjectId, upload: Upload) -> KeptReport:
    known = await _find(session, project_id, upload)
    if known is None and upload.for_job is not None:
        raise ConflictError(f"Job {upload.for_job.job_id} has an accepted result already.")
    if known is None:  # another project's, which this caller does not see
        raise ConflictError(f"Report id {upload.head.id} is taken: a new report needs a new id.")
    return await _replay(session, known, upload)


async def try_out(session: AsyncSession, upload: Upload) -> KeptReport:
    """Store a report as `keep` does, with every check of the database, and take all of it back."""
    async with session.begin_nested() as attempt:
        kept = await keep(session, upload)
        if kept.report in session:
            session.expunge(kept.report)
        await attempt.rollback()
    return kept


async def _find(session: AsyncSession, project_id: ProjectId, upload: Upload) -> Report | None:
    """The report with this id or this key. Index: pk_report, uq_report_project_id_idempotency_key."""
    rows = (
        await session.scalars(
            select(Report).where(
                or_(
                    Report.id == upload.head.id,
                    (Report.project_id == project_id) & (Report.idempotency_key == upload.key),
                )
            )
        )
    ).all()
    # The key decides; the id is the key of those who send none.
    return max(
        rows,
        key=lambda report: report.project_id == project_id and report.idempotency_key == upload.key,
        default=None,
    )


async def _replay(session: AsyncSession, known: Report, upload: Upload) -> KeptReport:
    """The stored report where this upload repeats it; else a conflict, with what differs and the remedy."""
    read = upload.prepared.read
    if known.digest == read.digest:
        return KeptReport(known, created=False)
    which = f"Idempotency-Key {upload.key!r}" if known.idempotency_key == upload.key else f"report id {read.head.id}"
    if read.format == FORMAT:
        raise ConflictError(
            f"Another report was stored under {which} (report {known.id}): a new report needs a new id and a new key."
        )
    # Files of tools have no id but the one that is made of them: only a key can be taken.
    body = await session.scalar(select(Report.body).where(Report.id == known.id))  # Index: pk_report
    same = body is not None and zlib.decompress(body) == zlib.decompress(upload.prepared.body)
    what = "This file was stored with other parameters" if same else "Another file was stored"
    raise ConflictError(f"{what} under {which} (report {known.id}): send a new Idempotency-Key, or none.")


async def _keep_parts(session: AsyncSession, project_id: ProjectId, placed: Sequence[_Placed]) -> None:
    """Points, failures and comparisons of reports that are stored."""
    cases = {identity: case for one in placed for identity, case in one.upload.parts.cases.items()}
    if not cases:
        return
    keys = [[(one.machine_id, *point.series.key) for point in one.upload.parts.points] for one in placed]
    wanted = {
        key: point.series
        for one, its_keys in zip(placed, keys, strict=True)
        for key, point in zip(its_keys, one.upload.parts.points, strict=True)
    }
    case_ids, known = await ensure_cases_and_series(session, project_id, cases, wanted)
    series = [[known[key] for key in its_keys] for its_keys in keys]
    for one, its_series in zip(placed, series, strict=True):
        _refuse_another_kind(one.upload.parts, its_series)
    await _copy_points(session, placed, series)
    for one in placed:
        if one.upload.parts.failures:
            await _keep_failures(session, one, case_ids)
        if one.upload.parts.comparisons:
            await _keep_comparisons(session, project_id, one, case_ids)


def _refuse_another_kind(parts: Parts, series: Sequence[KnownSeries]) -> None:
    """Raise where a number cannot stand beside those of its series."""
    for point, known in zip(parts.points, series, strict=True):
        if (known.unit, known.direction) != (point.series.unit, point.series.direction):
            message = (
                f"{point.series.metric} of this series is in {known.unit} ({known.direction} is better), "
                f"not in {point.series.unit} ({point.series.direction}): convert it, or name the metric differently"
            )
            refuse_part(point.path, message)
        if known.exact != point.series.exact:
            message = (
                f"{point.series.metric} of this series is {_KINDS[known.exact]}, not {_KINDS[point.series.exact]}: "
                "give it the kind it has, or name the metric differently"
            )
            refuse_part(point.path, message)


_KINDS = {True: "counted (kind exact)", False: "measured (kind noisy)"}


async def _copy_points(
    session: AsyncSession, placed: Sequence[_Placed], series: Sequence[Sequence[KnownSeries]]
) -> None:
    written = chain.from_iterable(
        lines(
            [known.id for known in its_series],
            [point.ending for point in one.upload.parts.points],
            commit=one.commit.id,
            report=one.upload.head.id,
            ordered_at=one.commit.ordered_at,
            quality=one.upload.head.harness.quality,
        )
        for one, its_series in zip(placed, series, strict=True)
    )
    driver = await statements.driver_of(session)
    async with driver.cursor() as cursor, cursor.copy(COPY_POINTS) as copy:
        for piece in in_pieces(written):
            await copy.write(piece)


async def _keep_failures(session: AsyncSession, placed: _Placed, case_ids: Mapping[bytes, CaseId]) -> None:
    await session.execute(
        insert(Failure),
        [
            {
                "report_id": placed.upload.head.id,
                "case_id": case_ids[failure.case],
                "commit_id": placed.commit.id,
                "machine_id": placed.machine_id,
                "ordered_at": placed.commit.ordered_at,
                "variant": failure.variant,
                "kind": failure.kind,
                "message": failure.message,
            }
            for failure in placed.upload.parts.failures
        ],
    )


async def _keep_comparisons(
    session: AsyncSession, project_id: ProjectId, placed: _Placed, case_ids: Mapping[bytes, CaseId]
) -> None:
    stated = [(part.case, part.document) for part in placed.upload.parts.comparisons]
    commits = await ensure_commits(
        session, project_id, (sha for _, document in stated for sha in (document.reference, document.candidate))
    )
    await session.execute(
        insert(Comparison),
        [
            {
                "report_id": placed.upload.head.id,
                "case_id": case_ids[case],
                "machine_id": placed.machine_id,
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
