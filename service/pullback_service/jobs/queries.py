"""Jobs in the database: made, listed, read. What agents do with them is in `leases.py`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, LiteralString, TypeVarTuple
from uuid import UUID

from sqlalchemy import BigInteger, Select, and_, cast, func, select
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from pullback_service.caller import name_of_caller
from pullback_service.commits.queries import CommitDescription, ensure_commit
from pullback_service.errors import FieldError, InvalidInputError, MissingObject, NotFoundError
from pullback_service.ids import CommitId, JobId, MachineId, ProjectId
from pullback_service.job_channel import notify_waiting_agents
from pullback_service.jobs.labels import column_with_device, with_device
from pullback_service.jobs.schemas import JobRequest
from pullback_service.jobs.trust import note_fork, trust_in
from pullback_service.models.commits import Commit
from pullback_service.models.jobs import Attempt, Job
from pullback_service.models.machines import Machine
from pullback_service.models.projects import Project
from pullback_service.models.reports import Report
from pullback_service.projects.queries import ensure_project, id_of
from pullback_service.statements import Query
from pullback_service.steps.projection import keep_steps

# A job in one of these makes another one for the same thing unnecessary.
STANDING = ("queued", "leased", "running", "done")
ACTIVE = ("leased", "running")
UNFINISHED = ("queued", *ACTIVE)

_AS_ASKED = {"suite", "cases", "variants", "kind", "priority", "requires", "timeout_s", "effort", "machine_id"}

AWAITS_APPROVAL = and_(Job.state == "queued", Job.trust == "untrusted", Job.approved_at.is_(None))

Row = TypeVarTuple("Row")

_Reference = aliased(Commit, name="reference")


_AT_COMMIT: LiteralString = """
SELECT job.id, job.suite, job.state, job.created_at, newest.failure_kind, newest.failure_message
  FROM job
  LEFT JOIN LATERAL (
       SELECT failure_kind, failure_message FROM attempt WHERE job_id = job.id ORDER BY number DESC LIMIT 1) newest ON true
 WHERE job.project_id = %(project)s AND job.commit_id = %(commit)s
 ORDER BY job.id DESC
 LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job with the names of what it belongs to; `reference` is the hash of the commit it compares with."""

    job: Job
    project: str
    commit: Commit
    reference: str | None


@dataclass(frozen=True, slots=True)
class JobChoice:
    """A choice of jobs; None is any."""

    project: str | None = None
    commit: str | None = None
    state: str | None = None
    suite: str | None = None
    kind: str | None = None
    origin: str | None = None
    machine_id: int | None = None
    awaits_approval: bool | None = None
    states: tuple[str, ...] = ()
    """Any of these, where it is not empty."""


async def create_job(session: AsyncSession, request: JobRequest, *, force: bool) -> tuple[StoredJob, bool]:
    """Queue a job and notify waiting agents; or, unless forced, find the standing one for the same thing. Index: ix_job_commit."""
    project = await ensure_project(session, request.project)
    project_id = ProjectId(project.id)
    if request.machine_id is not None:
        await _refuse_unknown_machine(session, MachineId(request.machine_id))
    description, fork = CommitDescription.of(request.commit), request.commit.fork
    if fork is not None:
        description = replace(description, branch=None)  # which is the fork's
    commit = await ensure_commit(session, project_id, description)
    if fork is not None:
        await note_fork(session, commit.id, fork)
    other = None if request.reference is None else CommitDescription.of(request.reference)
    reference = None if other is None else await ensure_commit(session, project_id, other)
    await keep_steps(session, project_id)
    commits = {commit.id} if reference is None else {commit.id, reference.id}
    job = Job(
        project_id=project_id,
        commit_id=commit.id,
        reference_id=None if reference is None else reference.id,
        trust=await trust_in(session, commits),
        asked_by=name_of_caller(session),
        **request.model_dump(include=_AS_ASKED),
    )
    if not force:
        # Two callers who ask for the same job take turns here, and the second finds what the first made.
        await take_turns(session, commit.id, request.kind, request.suite)
        state = await _standing(session, job)
        if state is not None:
            if state.state == "queued" and state.trust != job.trust == "trusted":
                state.trust = "trusted"  # the commit has become the project's own since
                await session.flush()
                await notify_waiting_agents(session)
            return await job_by_id(session, JobId(state.id)), False
    session.add(job)
    await session.flush()
    await notify_waiting_agents(session)
    return await job_by_id(session, JobId(job.id)), True


async def take_turns(session: AsyncSession, commit_id: CommitId, kind: str, suite: str) -> None:
    """Let one transaction at a time look whether a job is there and make it where it is not."""
    key = f"job {commit_id} {kind} {suite}"
    await session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(key, 0))))


async def _standing(session: AsyncSession, job: Job) -> Job | None:
    """The newest job for the same thing which makes another one unnecessary. Index: ix_job_commit."""
    return await session.scalar(
        select(Job)
        .where(
            Job.project_id == job.project_id,
            Job.commit_id == job.commit_id,
            Job.suite == job.suite,
            Job.cases == job.cases,
            Job.variants == job.variants,
            Job.effort == job.effort,
            Job.kind == job.kind,
            column_with_device(Job.requires) == with_device(job.requires),
            Job.reference_id.is_not_distinct_from(job.reference_id),
            Job.machine_id.is_not_distinct_from(job.machine_id),
            Job.state.in_(STANDING),
        )
        .order_by(Job.id.desc())
        .limit(1)
        .with_for_update(key_share=True)
    )


async def _refuse_unknown_machine(session: AsyncSession, machine_id: MachineId) -> None:
    if await session.scalar(select(Machine.id).where(Machine.id == machine_id)) is None:
        message = f"There is no machine {machine_id}: GET /api/v1/machines lists them"
        raise InvalidInputError(f"{message}.", errors=[FieldError(path="$.machine_id", message=message)])


async def lock_job(session: AsyncSession, job_id: JobId) -> Job:
    """A job whose row nobody else changes until this transaction ends. Index: pk_job."""
    job = await session.scalar(
        select(Job).where(Job.id == job_id).with_for_update().execution_options(populate_existing=True)
    )
    if job is None:
        raise unknown_job(job_id)
    return job


async def job_by_id(session: AsyncSession, job_id: JobId) -> StoredJob:
    """A job. Index: pk_job."""
    row = (
        await session.execute(_select().where(Job.id == job_id).execution_options(populate_existing=True))
    ).one_or_none()
    if row is None:
        raise unknown_job(job_id)
    return StoredJob(*row)


async def reference_of(session: AsyncSession, job: Job) -> Commit | None:
    """The commit a job compares its own with. Index: pk_commit."""
    return None if job.reference_id is None else await session.get(Commit, job.reference_id)


async def list_jobs(
    session: AsyncSession,
    *,
    project: str | None = None,
    commit: str | None = None,
    state: str | None = None,
    before_id: int | None,
    limit: int,
    choice: JobChoice | None = None,
) -> Sequence[StoredJob]:
    """Jobs, newest first. Index: pk_job, ix_job_state where a state is asked for, ix_attempt_machine_id for a machine."""
    selection = choice or JobChoice(project=project, commit=commit, state=state)
    statement = _chosen(_select(), selection).order_by(Job.id.desc()).limit(limit)
    if before_id is not None:
        statement = statement.where(Job.id < before_id)
    return [StoredJob(*row) for row in await session.execute(statement)]


def jobs_at(project_id: ProjectId, commit_id: int, *, limit: int) -> Query[list[tuple[Any, ...]]]:
    """Id, suite, state and time of the jobs at a commit, and the failure of the last attempt, newest first.

    Index: ix_job_commit, uq_attempt_job_id_number.
    """
    return Query(_AT_COMMIT, {"project": project_id, "commit": commit_id, "limit": limit}, list, width=6)


async def waiting_jobs(
    session: AsyncSession, choice: JobChoice, turns: Iterable[int], *, skip: int, limit: int
) -> Sequence[StoredJob]:
    """Jobs that wait, in the order of `turns`, their ids; behind these the others, by priority, attempts and age. Index: ix_job_state."""
    ids = cast(list(turns), ARRAY(BigInteger))
    turn = func.unnest(ids).table_valued("id", with_ordinality="place", name="turn").render_derived()
    statement = _chosen(_select(), replace(choice, states=("queued",))).outerjoin(turn, turn.c.id == Job.id)
    statement = statement.order_by(turn.c.place, Job.priority.desc(), Job.attempts, Job.id).offset(skip).limit(limit)
    return [StoredJob(*row) for row in await session.execute(statement)]


async def count_jobs(session: AsyncSession, choice: JobChoice) -> Mapping[str, int]:
    """Counts of the jobs of a choice by state. Index: ix_job_state."""
    statement = _chosen(
        select(Job.state, func.count())
        .select_from(Job)
        .join(Project, Project.id == Job.project_id)
        .join(Commit, Commit.id == Job.commit_id),
        choice,
    )
    return {row[0]: row[1] for row in await session.execute(statement.group_by(Job.state))}


async def newest_attempts(session: AsyncSession, job_ids: Collection[int]) -> Mapping[int, Attempt]:
    """The last attempt of each of some jobs, by the job's id. Index: uq_attempt_job_id_number."""
    statement = (
        select(Attempt)
        .where(Attempt.job_id.in_(job_ids))
        .ext(distinct_on(Attempt.job_id))
        .order_by(Attempt.job_id, Attempt.number.desc())
    )
    return {attempt.job_id: attempt for attempt in await session.scalars(statement)}


def _chosen(statement: Select[*Row], choice: JobChoice) -> Select[*Row]:
    for column, value in (
        (Commit.sha, choice.commit),
        (Job.state, choice.state),
        (Job.suite, choice.suite),
        (Job.kind, choice.kind),
        (Job.origin, choice.origin),
    ):
        if value is not None:
            statement = statement.where(column == value)
    if choice.project is not None:
        statement = statement.where(Job.project_id == id_of(choice.project))
    if choice.states:
        statement = statement.where(Job.state.in_(choice.states))
    if choice.machine_id is not None:
        tried = select(Attempt.job_id).where(Attempt.machine_id == choice.machine_id)
        statement = statement.where(Job.id.in_(tried) | (Job.machine_id == choice.machine_id))
    if choice.awaits_approval is not None:
        statement = statement.where(AWAITS_APPROVAL if choice.awaits_approval else ~AWAITS_APPROVAL)
    return statement


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
    return NotFoundError(
        f"There is no job {job_id}: GET /api/v1/jobs lists them.", missing=MissingObject("job", str(job_id))
    )


def _select() -> Select[Job, str, Commit, str | None]:
    return (
        select(Job, Project.name, Commit, _Reference.sha)
        .select_from(Job)
        .join(Project, Project.id == Job.project_id)
        .join(Commit, Commit.id == Job.commit_id)
        .join(_Reference, _Reference.id == Job.reference_id, isouter=True)
    )
