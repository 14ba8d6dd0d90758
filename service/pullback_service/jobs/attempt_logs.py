"""Logs of attempts, by byte offset: a piece continues where the stored log ends, or is what is stored there already."""

from dataclasses import dataclass

from sqlalchemy import and_, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.errors import MissingObject, NotFoundError, OffsetError, TooLargeError
from pullback_service.ids import JobId
from pullback_service.jobs.leases import LockedAttempt
from pullback_service.jobs.queries import ACTIVE, UNFINISHED, unknown_job
from pullback_service.models.jobs import Attempt, Job, JobLog

LONGEST_READ = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Bytes of a log from `offset` on; `complete` when the attempt has ended, or never begins, and nothing follows."""

    content: bytes
    offset: int
    size: int
    attempt: int
    complete: bool
    job_state: str


async def append(session: AsyncSession, locked: LockedAttempt, offset: int, content: bytes, *, most_bytes: int) -> int:
    """Store a piece of a log and return the new size. A piece sent twice is stored once. Index: pk_job_log."""
    attempt = locked.attempt
    if offset < attempt.log_bytes and offset + len(content) <= attempt.log_bytes:
        stored = await _read(session, attempt.id, offset, len(content))
        if stored == content:
            return attempt.log_bytes
    if offset != attempt.log_bytes:
        raise OffsetError(
            f"The log of attempt {attempt.number} of job {locked.job.id} has {attempt.log_bytes} bytes: "
            "send the bytes after them.",
            expected_offset=attempt.log_bytes,
        )
    if offset + len(content) > most_bytes:
        raise TooLargeError(f"The log of an attempt is limited to {most_bytes} bytes: stop sending this one.")
    if content:
        session.add(JobLog(attempt_id=attempt.id, start_byte=offset, content=content))
        attempt.log_bytes = offset + len(content)
        await session.flush()
    return attempt.log_bytes


async def read(session: AsyncSession, job_id: JobId, offset: int, *, number: int | None) -> LogPiece:
    """The log of an attempt, the newest by default, from an offset on. Index: pk_job, uq_attempt_job_id_number, pk_job_log.

    The attempt after the newest has an empty log, so that a reader can wait for it.
    """
    its = and_(Attempt.job_id == Job.id, Attempt.number == (Job.attempts if number is None else number))
    statement = select(Job.state, Job.attempts, Attempt).outerjoin(Attempt, its).where(Job.id == job_id)
    row = (await session.execute(statement)).one_or_none()
    if row is None:
        raise unknown_job(job_id)
    job_state, attempts, attempt = row
    if attempt is None:
        attempt_number = attempts if number is None else number
        if attempt_number > attempts + 1:
            raise NotFoundError(
                f"Job {job_id} has no attempt {attempt_number}.", missing=MissingObject("attempt", str(attempt_number))
            )
        if offset > 0:
            raise OffsetError(
                f"Attempt {attempt_number} of job {job_id} has not started: its log is empty.", expected_offset=0
            )
        return LogPiece(b"", 0, 0, attempt_number, complete=job_state not in UNFINISHED, job_state=job_state)
    if offset > attempt.log_bytes:
        raise OffsetError(
            f"The log of attempt {attempt.number} of job {job_id} has {attempt.log_bytes} bytes, not {offset}.",
            expected_offset=attempt.log_bytes,
        )
    content = await _read(session, attempt.id, offset, LONGEST_READ) if offset < attempt.log_bytes else b""
    complete = attempt.state not in ACTIVE and offset + len(content) == attempt.log_bytes
    return LogPiece(content, offset, attempt.log_bytes, attempt.number, complete, job_state)


async def _read(session: AsyncSession, attempt_id: int, offset: int, length: int) -> bytes:
    first = (
        select(func.coalesce(func.max(JobLog.start_byte), 0))
        .where(JobLog.attempt_id == attempt_id, JobLog.start_byte <= offset)
        .scalar_subquery()
    )
    rows = (
        await session.execute(
            select(JobLog.start_byte, JobLog.content)
            .where(JobLog.attempt_id == attempt_id, JobLog.start_byte >= first, JobLog.start_byte < offset + length)
            .order_by(JobLog.start_byte)
        )
    ).all()
    if not rows:
        return b""
    skipped = offset - rows[0].start_byte
    return b"".join(row.content for row in rows)[skipped : skipped + length]
