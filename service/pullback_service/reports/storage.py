"""Storing a report in one transaction, completely or not at all, and only once if the upload is repeated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.deferred_chores import defer_follow_up
from pullback_service.errors import ConflictError, DamagedError
from pullback_service.ids import ProjectId
from pullback_service.models.reports import Report
from pullback_service.projects.queries import ensure_project
from pullback_service.reports.case_stream import Parts
from pullback_service.reports.codecs import unpacked
from pullback_service.reports.commits_and_machines import CommitAndMachine, place
from pullback_service.reports.existing_rows import meet
from pullback_service.reports.part_storage import PlacedParts, keep_parts
from pullback_service.reports.preparation import PreparedReport
from pullback_service.reports.report_row import JobAttempt, insert_rows, row_of
from pullback_service.reports.schemas import FORMAT, ReportHead
from pullback_service.reports.stored_files import unpack


@dataclass(frozen=True, slots=True)
class Upload:
    """A report to be stored once, whatever is repeated: under its `key`. `for_job` says whose result it is."""

    prepared: PreparedReport
    key: str
    for_job: JobAttempt | None = None

    @classmethod
    def of(cls, prepared: PreparedReport, idempotency_key: str | None, for_job: JobAttempt | None = None) -> Self:
        """An upload; the key of those who send none is the id of the report."""
        return cls(prepared, idempotency_key or str(prepared.read.head.id), for_job)

    @property
    def head(self) -> ReportHead:
        """The parts of the report beside its measurements."""
        return self.prepared.read.head

    @property
    def parts(self) -> Parts:
        """The stored parts of the measurements."""
        return self.prepared.read.parts

    @property
    def harness(self) -> str:
        """The release of our harness that measured it; empty for another tool's file."""
        return self.head.harness.version if self.prepared.read.format == FORMAT else ""

    @property
    def is_on_history(self) -> bool:
        """True if it counts for a commit. Uncommitted changes are no commit's: such an upload is kept, and is on no history.

        What a job found instead of its commit (files without git) is all that machine has, and is marked wherever it
        is shown.
        """
        return not self.head.commit.dirty or self.for_job is not None


@dataclass(frozen=True, slots=True)
class StorageResult:
    """A stored report and whether this upload stored it."""

    report: Report
    created: bool


async def keep(session: AsyncSession, upload: Upload) -> StorageResult:
    """Store a report, or find that it is stored. The same key with another body is a conflict."""
    return (await keep_together(session, [upload]))[0]


async def keep_together(session: AsyncSession, uploads: Sequence[Upload]) -> list[StorageResult]:
    """Store reports of one project, asking once for what all of them need; no two have one id, or one key.

    Whatever is wrong with one of them is raised, and takes the others with it.
    """
    known_machines = await meet(session, uploads[0].head.project, [(upload.head, upload.key) for upload in uploads])
    project_id = known_machines[0].project_id or ProjectId((await ensure_project(session, uploads[0].head.project)).id)
    stored: dict[str, StorageResult] = {}
    for upload, there in zip(uploads, known_machines, strict=True):
        if there.stored and (known := await find(session, project_id, upload.head.id, upload.key)) is not None:
            stored[upload.key] = await _replay(session, known, upload)
    new = [
        (upload, there.machine_id)
        for upload, there in zip(uploads, known_machines, strict=True)
        if upload.key not in stored
    ]
    if new:
        places = await place(session, project_id, [upload.head for upload, _ in new], [machine for _, machine in new])
        placed = [(upload, its_place) for (upload, _), its_place in zip(new, places, strict=True)]
        stored |= await _keep_new(session, project_id, placed)
    return [stored[upload.key] for upload in uploads]


async def _keep_new(
    session: AsyncSession, project_id: ProjectId, placed: Sequence[tuple[Upload, CommitAndMachine]]
) -> dict[str, StorageResult]:
    """The new rows under each key."""
    reports: dict[str, Report] = {}
    for upload, its_place in placed:
        reports[upload.key] = row_of(
            project_id, its_place, upload.prepared, upload.key, upload.for_job, is_on_history=upload.is_on_history
        )
    stored = await insert_rows(session, reports.values())
    results = {key: StorageResult(report, created=True) for key, report in reports.items() if report.id in stored}
    for upload, _ in placed:
        if upload.key not in results:  # somebody stored the same report between our looking and our writing
            results[upload.key] = await _stored_meanwhile(session, project_id, upload)
    fresh = [(upload, its_place) for upload, its_place in placed if results[upload.key].created]
    if fresh:
        on_history = [
            PlacedParts(upload.head, its_place, upload.parts, upload.harness)
            for upload, its_place in fresh
            if upload.is_on_history
        ]
        await keep_parts(session, project_id, on_history)
        await defer_follow_up(session, project_id, fresh[0][0].head.id)
    return results


async def _stored_meanwhile(session: AsyncSession, project_id: ProjectId, upload: Upload) -> StorageResult:
    known = await find(session, project_id, upload.head.id, upload.key)
    if known is None and upload.for_job is not None:
        raise ConflictError(f"Job {upload.for_job.job_id} already has an accepted result.")
    if known is None:  # another project's, which this caller does not see
        raise ConflictError(f"Report id {upload.head.id} is in use: give the new report a new id.")
    return await _replay(session, known, upload)


async def try_out(session: AsyncSession, upload: Upload) -> StorageResult:
    """Store a report as `keep` does, with every check of the database, and take all of it back."""
    async with session.begin_nested() as attempt:
        stored = await keep(session, upload)
        if stored.report in session:
            session.expunge(stored.report)
        await attempt.rollback()
    return stored


async def find(session: AsyncSession, project_id: ProjectId, report_id: UUID, key: str) -> Report | None:
    """The report with this id or this key. Index: pk_report, uq_report_project_id_idempotency_key."""
    rows = (
        await session.scalars(
            select(Report).where(
                or_(
                    Report.id == report_id,
                    (Report.project_id == project_id) & (Report.idempotency_key == key),
                )
            )
        )
    ).all()
    # The key decides; the id is the key of those who send none.
    return max(
        rows,
        key=lambda report: report.project_id == project_id and report.idempotency_key == key,
        default=None,
    )


async def _replay(session: AsyncSession, known: Report, upload: Upload) -> StorageResult:
    """The stored report where this upload repeats it; else a conflict, with what differs and the remedy."""
    read = upload.prepared.read
    if known.digest == read.digest:
        return StorageResult(known, created=False)
    which = f"Idempotency-Key {upload.key!r}" if known.idempotency_key == upload.key else f"report id {read.head.id}"
    if read.format == FORMAT:
        raise ConflictError(
            f"Another report was stored under {which} (report {known.id}): give the new report a new id and a new key."
        )
    # Files of tools have no id but the one that is made of them: only a key can be taken.
    body = await session.scalar(select(Report.body).where(Report.id == known.id))  # Index: pk_report
    try:
        same = body is not None and unpack(known.id, body) == unpacked(upload.prepared.body)
        what = "This file was stored with other parameters" if same else "Another file was stored"
    except DamagedError:
        what = "A file that is now damaged was stored"
    raise ConflictError(f"{what} under {which} (report {known.id}): use a new Idempotency-Key, or none.")
