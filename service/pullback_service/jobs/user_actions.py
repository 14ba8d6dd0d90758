"""Decisions of people about jobs that exist: run it again, let it run, let it run sooner.

Each locks the job's row first, so that it happens before or after a claim or a cancellation, never in between. Deciding the same
twice changes nothing, and says so; what somebody else's decision has made impossible is a conflict that says how the job stands.
"""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now

from pullback_service.errors import ConflictError
from pullback_service.ids import JobId
from pullback_service.job_channel import notify_waiting_agents
from pullback_service.jobs.leases import ATTEMPTS
from pullback_service.jobs.queries import UNFINISHED, lock_job


async def retry(session: AsyncSession, job_id: JobId) -> bool:
    """Queue a failed, lost or cancelled job again, with three more attempts; what was tried before stays its history.

    One that pauses pauses no longer; one that is on its way already stays as it is.
    """
    job = await lock_job(session, job_id)
    if job.state == "queued" and job.not_before is not None:
        job.not_before = None
        await session.flush()
        await notify_waiting_agents(session)
        return True
    if job.state in UNFINISHED and job.cancel_requested_at is not None:
        raise ConflictError(f"Job {job_id} is {job.state} and being cancelled: retry it when it has ended.")
    if job.state in UNFINISHED:
        return False
    if job.state == "done":
        raise ConflictError(
            f"Job {job_id} is done and has its result: to measure again, create another job with force=true."
        )
    job.state = "queued"
    job.max_attempts = job.attempts + ATTEMPTS
    job.origin = "asked"  # a machine that is idle may be given another thing to do meanwhile
    job.failure_kind = job.failure_message = job.cancel_requested_at = job.finished_at = job.not_before = None
    await session.flush()
    await notify_waiting_agents(session)
    return True


async def approve(session: AsyncSession, job_id: JobId, *, by: str) -> bool:
    """Let an untrusted job run, on machines that accept such. A trusted one needs no approval and stays as it is."""
    job = await lock_job(session, job_id)
    needed = job.trust == "untrusted" and job.approved_at is None
    if job.state == "cancelled" or (needed and job.state != "queued"):
        raise ConflictError(
            f"Job {job_id} is {job.state} and not waiting for approval: retry it first, then approve it."
        )
    if not needed:
        return False
    job.approved_at = await session.scalar(select(now()))
    job.approved_by = by
    await session.flush()
    await notify_waiting_agents(session)
    return True


async def set_priority(session: AsyncSession, job_id: JobId, priority: int) -> bool:
    """Let a job that has not ended run sooner or later than others; one at work keeps it for when it comes back."""
    job = await lock_job(session, job_id)
    if job.state not in UNFINISHED:
        raise ConflictError(f"Job {job_id} is {job.state}: only unfinished jobs have a priority.")
    changed = job.priority != priority
    job.priority = priority
    await session.flush()
    return changed
