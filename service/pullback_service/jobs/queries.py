"""Jobs in the database: made, listed, read. What agents do with them is in `leases.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.commits.models import Commit
from pullback_service.commits.queries import ToldCommit, ensure_commit
from pullback_service.errors import NotFoundError
from pullback_service.ids import JobId, ProjectId
from pullback_service.jobs.bell import ring
from pullback_service.jobs.models import Attempt, Job
from pullback_service.projects.models import Project
from pullback_service.projects.queries import ensure_project
from pullback_service.reports.models import Report

# A job in one of these makes another one for the same thing unnecessary.
STANDING = ("queued", "leased", "running", "done")
ACTIVE = ("leased", "running")


@dataclass(frozen=True, slots=True)
class WantedJob:
    """Work as it is asked for."""

    project: str
    commit: ToldCommit
    suite: str
    kind: str
    priority: int
    requires: Mapping[str, Any]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job with the names of what it belongs to."""

    job: Job
    project: str
    commit: Commit


async def create_job(session: AsyncSession, wanted: WantedJob, *, force: bool) -> tuple[StoredJob, bool]:
    """Queue a job and ring the bell; or, unless forced, find the standing one for the same thing. Index: ix_job_commit."""
    project = await ensure_project(session, wanted.project)
    commit = await ensure_commit(session, ProjectId(project.id), wanted.commit)
    if not force:
        # Two callers who ask for the same job take turns here, and the second finds what the first made.
        key = f"job {commit.id} {wanted.kind} {wanted.suite}"
        await session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(key, 0))))
        standing = await session.scalar(
            select(Job.id)
            .where(
                Job.project_id == project.id,
                Job.commit_id == commit.id,
                Job.suite == wanted.suite,
                Job.kind == wanted.kind,
                Job.requires == dict(wanted.requires),
                Job.state.in_(STANDING),
            )
            .order_by(Job.id.desc())
            .limit(1)
        )
        if standing is not None:
            return await job_by_id(session, JobId(standing)), False
    job = Job(
        project_id=project.id,
        commit_id=commit.id,
        suite=wanted.suite,
        kind=wanted.kind,
        priority=wanted.priority,
        requires=dict(wanted.requires),
        timeout_s=wanted.timeout_s,
    )
    session.add(job)
    await session.flush()
    await ring(session)
    return await job_by_id(session, JobId(job.id)), True


async def job_by_id(session: AsyncSession, job_id: JobId) -> StoredJob:
    """A job. Index: pk_job."""
    row = (
        await session.execute(_select().where(Job.id == job_id).execution_options(populate_existing=True))
    ).one_or_none()
    if row is None:
        raise unknown_job(job_id)
    return StoredJob(*row)


async def list_jobs(
    session: AsyncSession,
    *,
    project: str | None,
    commit: str | None,
    state: str | None,
    before_id: int | None,
    limit: int,
) -> Sequence[StoredJob]:
    """Jobs, newest first. Index: pk_job, ix_job_state where a state is asked for."""
    statement = _select().order_by(Job.id.desc()).limit(limit)
    if project is not None:
        statement = statement.where(Project.name == project)
    if commit is not None:
        statement = statement.where(Commit.sha == commit)
    if state is not None:
        statement = statement.where(Job.state == state)
    if before_id is not None:
        statement = statement.where(Job.id < before_id)
    return [StoredJob(*row) for row in await session.execute(statement)]


async def attempts_of(session: AsyncSession, job_id: JobId) -> Sequence[Attempt]:
    """Attempts of a job, first to last. Index: uq_attempt_job_id_number."""
    return (await session.scalars(select(Attempt).where(Attempt.job_id == job_id).order_by(Attempt.number))).all()


async def result_of(session: AsyncSession, job_id: JobId) -> UUID | None:
    """The accepted report of a job, or the newest late one where there is no other. Index: uq_report_job_accepted."""
    return await session.scalar(
        select(Report.id)
        .where(Report.job_id == job_id)
        .order_by(Report.status, Report.received_at.desc())  # `accepted` stands before `late` in any alphabet
        .limit(1)
    )


def unknown_job(job_id: int) -> NotFoundError:
    """The error for a job that does not exist."""
    return NotFoundError(f"There is no job {job_id}: GET /api/v1/jobs lists those there are.")


def _select() -> Select[Job, str, Commit]:
    return (
        select(Job, Project.name, Commit)
        .select_from(Job)
        .join(Project, Project.id == Job.project_id)
        .join(Commit, Commit.id == Job.commit_id)
    )
