"""The life of a job between agents and the service: claim, heartbeat, fail, finish, cancel, expire.

    queued → leased → running → done | failed | cancelled | lost
       ↑________________|  a lost lease, or after a pause a passing fault of the machine; `max_attempts` times in all,
                           then lost; at once where it took a second agent with it

    The result of an attempt whose lease was lost is stored as `late` while another attempt runs, and where the job is done or
    cancelled; otherwise it is accepted, and the job is done. A late result is accepted when the running attempt ends without one.

Rules that hold whatever agents and networks do:
- The job's row is locked before anything about it changes, so its steps happen one after the other.
- Claims skip rows that others have locked and never wait for a job.
- Only the token of an attempt speaks for that attempt. When its lease is gone the answer is `lost`.
- The clock is the database's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID, uuid4

from sqlalchemy import CTE, ColumnElement, Select, and_, cast, func, literal, or_, select, text, true, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now

from pullback_service.caller import caller_of
from pullback_service.database import seeing_all_projects
from pullback_service.deferred_chores import defer_detection
from pullback_service.errors import ConflictError, FieldError, InvalidInputError, NotFoundError
from pullback_service.ids import AgentId, JobId, LeaseToken, MachineId, ProjectId
from pullback_service.job_channel import notify_waiting_agents
from pullback_service.jobs.labels import column_with_device, contains_strangers, with_device
from pullback_service.jobs.queries import ACTIVE, UNFINISHED, lock_job
from pullback_service.models.jobs import CLAIMABLE, DUE, Attempt, Job
from pullback_service.models.machines import Machine
from pullback_service.models.projects import Project
from pullback_service.models.reports import Report

# After its own time limit a job gets this long to wind up before it is told to stop.
GRACE_S = 60
ATTEMPTS = 3
MOST_LOST_AGENTS = 2
"""The number of agents lost while running a job after which it waits for a person: what it runs may be what ends them."""
FAIR_WITHIN_S = 3600
MOST_COUNTED = 200
"""The newest attempts of a machine that are looked at for who had it within the last hour."""
_BY_AGE = (Job.priority.desc(), Job.attempts, Job.id)
PAUSES_GROW = 4
LONGEST_PAUSE_S = 3600.0
MOST_EXPIRED_AT_ONCE = 100

CAME_LATE = "Its result came later."

HeartbeatVerdict = Literal["continue", "cancel", "lost"]


@dataclass(frozen=True, slots=True)
class Lease:
    """A job given to an agent."""

    job_id: JobId
    attempt: int
    token: LeaseToken


@dataclass(frozen=True, slots=True)
class LockedAttempt:
    """An attempt whose token was shown, with its job, both locked."""

    job: Job
    attempt: Attempt

    @property
    def is_active(self) -> bool:
        """True if the lease still holds."""
        return self.attempt.state in ACTIVE and self.job.state in ACTIVE

    @property
    def gives_result(self) -> bool:
        """True if what it measured becomes the result of the job: measuring again would tell nothing new."""
        return self.is_active or self.job.state in {"queued", "failed", "lost"}


async def claim(
    session: AsyncSession,
    agent_id: AgentId,
    machine_id: MachineId,
    labels: Mapping[str, Any],
    lease_s: float,
    kinds: Sequence[str] = ("run",),
) -> Lease | None:
    """The best waiting job that these labels, the kinds the agent knows and the machine's trust allow, or None.

    Of projects with jobs of one kind of urgency the one that had the machine least within the last hour is first (`_used_lately`).
    An agent whose answer got lost on the way asks again and gets the same lease, as long as it has not begun.
    Index: uq_attempt_machine_active, ix_job_queue, ix_job_project_queue, ix_attempt_machine_id.
    """
    async with seeing_all_projects(session):  # what the machine does may be for another project
        active = await _active_on(session, machine_id)
    if active is not None:
        return await _give_again(session, active, agent_id, lease_s)
    fitting = select(Job.id).where(
        text(CLAIMABLE),
        text(DUE),
        column_with_device(Job.requires).contained_by(cast(with_device(labels), JSONB)),
        Job.kind.in_(kinds),
        or_(Job.machine_id.is_(None), Job.machine_id == machine_id),
        # Read with the machine's row locked when it counts: who lowers or raises it waits for this claim.
        or_(
            Job.trust == "trusted",
            and_(
                literal(contains_strangers(labels)),
                select(Machine.accepts).where(Machine.id == machine_id).scalar_subquery() == "untrusted",
            ),
        ),
    )
    if await session.scalar(fitting.order_by(*_BY_AGE).limit(1)) is None:
        return None
    # Agents of one machine take turns from here on; the unique index would refuse the second one anyway.
    await session.execute(select(Machine.id).where(Machine.id == machine_id).with_for_update(key_share=True))
    async with seeing_all_projects(session):
        if await _active_on(session, machine_id) is not None:
            return None
    row = (
        await session.execute(
            update(Job)
            .where(Job.id == _best(fitting, machine_id).scalar_subquery())
            .values(state="leased", attempts=Job.attempts + 1)
            .returning(Job.id, Job.attempts)
        )
    ).one_or_none()
    if row is None:
        return None
    token = LeaseToken(uuid4())
    session.add(
        Attempt(
            job_id=row.id,
            number=row.attempts,
            agent_id=agent_id,
            machine_id=machine_id,
            lease_token=token,
            lease_expires_at=_from_now(lease_s),
        )
    )
    await session.flush()
    return Lease(JobId(row.id), row.attempts, token)


def _best(fitting: Select[int], machine_id: MachineId) -> Select[int]:
    """The job whose turn it is on a machine, locked; one that another claim has locked is passed over.

    The first job of each project and class is looked up (`_heads`), not every one that waits.
    """
    heads, used = _heads(fitting), _used_lately(machine_id)
    turns = (
        select(heads)
        .outerjoin(used, used.c.project_id == heads.c.project_id)
        .order_by(
            heads.c.least.desc(),
            func.coalesce(used.c.seconds, 0),
            heads.c.priority.desc(),
            heads.c.attempts,
            heads.c.id,
        )
        .subquery("turns")
    )
    taken = (
        fitting
        # Below the class nothing is locked. With the sum Postgres makes no range of it: it would expect few rows, and read and sort them all.
        .where(
            Job.project_id == turns.c.project_id, Job.priority <= turns.c.priority, Job.priority + 0 >= turns.c.least
        )
        .order_by(*_BY_AGE)
        .limit(1)
        .with_for_update(skip_locked=True, of=Job)
        .lateral("taken")
    )
    return select(taken.c.id).select_from(turns).join(taken, true()).limit(1)


def _heads(fitting: Select[int]) -> CTE:
    """The first of the jobs of each project, and behind it the first of each class of a lower priority.

    All priorities from 0 on are one class: what is above the usual one counts among the jobs of its project alone, for anybody
    who may queue jobs may name one. `least` is the least priority of the class.
    """
    least = func.least(Job.priority, 0).label("least")
    first = fitting.with_only_columns(Job.project_id, least, Job.priority, Job.attempts, Job.id).order_by(*_BY_AGE)
    of_project = first.where(Job.project_id == Project.id).limit(1).lateral()
    heads = select(of_project).select_from(Project).join(of_project, true()).cte("heads", recursive=True)
    below = first.where(Job.project_id == heads.c.project_id, Job.priority < heads.c.least).limit(1).lateral()
    return heads.union_all(select(below).select_from(heads).join(below, true()))


def _used_lately(machine_id: MachineId) -> CTE:
    """The seconds that projects have had a machine within the last hour, as far as its newest attempts tell."""
    since = now() - timedelta(seconds=FAIR_WITHIN_S)
    newest = (
        select(Attempt.job_id, Attempt.leased_at, func.coalesce(Attempt.ended_at, now()).label("ended_at"))
        .where(Attempt.machine_id == machine_id)
        .order_by(Attempt.id.desc())
        .limit(MOST_COUNTED)
        .subquery()
    )
    taken = func.sum(func.extract("epoch", newest.c.ended_at - func.greatest(newest.c.leased_at, since)))
    return (
        select(Job.project_id, taken.label("seconds"))
        .join(newest, newest.c.job_id == Job.id)
        .where(newest.c.ended_at > since)
        .group_by(Job.project_id)
        .cte("used")
        .prefix_with("MATERIALIZED")  # or it may be counted once for each job that waits
    )


async def refuse_unknown(session: AsyncSession, job_id: JobId, number: int, token: UUID) -> None:
    """Raise where a token is not that of this attempt, before anything else is read. Index: uq_attempt_job_id_number."""
    await _known(session, job_id, number, token, select(Attempt))


async def hold(session: AsyncSession, job_id: JobId, number: int, token: UUID) -> LockedAttempt:
    """Lock a job and one of its attempts for whoever shows the attempt's token. Index: uq_attempt_job_id_number."""
    job = await lock_job(session, job_id)
    locked = select(Attempt).with_for_update().execution_options(populate_existing=True)
    return LockedAttempt(job, await _known(session, job_id, number, token, locked))


async def _known(session: AsyncSession, job_id: JobId, number: int, token: UUID, attempts: Select[Attempt]) -> Attempt:
    attempt = await session.scalar(attempts.where(Attempt.job_id == job_id, Attempt.number == number))
    if attempt is None:
        raise NotFoundError(f"Job {job_id} has no attempt {number}.")
    if attempt.lease_token != token:
        raise ConflictError(f"This lease token is not that of attempt {number} of job {job_id}: claim a job first.")
    caller = caller_of(session)
    if caller is not None and caller.agent_id not in {None, attempt.agent_id}:
        raise ConflictError(
            f"Attempt {number} of job {job_id} was given to another agent: only that one speaks for it."
        )
    return attempt


async def refuse_another_machine(session: AsyncSession, attempt: Attempt, fingerprint: str, host: str | None) -> None:
    """Raise where a result says that another machine measured it than the one that was given the attempt.

    Whom a job may be given to is a matter of trust, and series are kept by machine: a result must not choose its own.
    Index: pk_machine.
    """
    machine = await session.get_one(Machine, attempt.machine_id)
    for what, told, own in (("fingerprint", fingerprint, machine.fingerprint), ("host", host, machine.host)):
        if told != own and None not in (told, own):
            message = (
                f"is {told!r}, but attempt {attempt.number} of job {attempt.job_id} was given to {machine.name!r}, whose "
                f"{what} is {own!r}: send results of that machine, or upload this report without a job"
            )
            path = f"$.machine.{what}"
            raise InvalidInputError(f"{path} {message}.", errors=[FieldError(path=path, message=message)])


async def heartbeat(
    session: AsyncSession,
    locked: LockedAttempt,
    *,
    phase: str | None,
    progress: Mapping[str, Any] | None,
    lease_s: float,
) -> HeartbeatVerdict:
    """Renew a lease; a lease that ran out but was not taken away yet is renewed as well."""
    if not locked.is_active:
        return "lost"
    job, attempt = locked.job, locked.attempt
    job.state = attempt.state = "running"
    values: dict[str, Any] = {"heartbeat_at": now(), "lease_expires_at": _from_now(lease_s)}
    if phase is not None:
        values["phase"] = phase
    if progress is not None:
        values["progress"] = dict(progress)
    await session.execute(update(Attempt).where(Attempt.id == attempt.id).values(**values))
    if job.cancel_requested_at is not None:
        return "cancel"
    overdue = await session.scalar(select(now() > attempt.leased_at + timedelta(seconds=job.timeout_s + GRACE_S)))
    return "cancel" if overdue else "continue"


async def fail(
    session: AsyncSession,
    locked: LockedAttempt,
    *,
    kind: str,
    message: str,
    retryable: bool,
    pause_s: float = 0.0,
    agent_ended: bool = False,
) -> Literal["done", "failed", "cancelled", "queued", "lost"]:
    """End an attempt without a result.

    Only a passing fault of the machine (`infra`, retryable) is tried again: a commit that does not build or a workload
    that breaks is a result. What failed fails again a second later (a clone without the commit, a full disk), so the job pauses for `pause_s`,
    and `PAUSES_GROW` times as long after every further attempt. Saying it twice changes nothing. With `agent_ended` it is an agent
    that was killed at this work and has come back: its attempt is lost, as that of one that does not come back.
    """
    if not locked.is_active:
        return "lost"
    job, attempt = locked.job, locked.attempt
    cancelled = kind == "cancelled" or job.cancel_requested_at is not None
    _end(attempt, "cancelled" if cancelled else "lost" if agent_ended else "failed", kind, message)
    if cancelled:
        _finish(job, "cancelled", "cancelled", message)
        return "cancelled"
    if await _finish_by_late_result(session, job):
        return "done"
    if kind == "infra" and retryable:
        tries = job.attempts - (job.max_attempts - ATTEMPTS)  # since it was queued, or queued again by somebody
        pause_s = min(pause_s * PAUSES_GROW ** (tries - 1), LONGEST_PAUSE_S)
        return await _try_again(session, job, kind, message, pause_s=pause_s)
    _finish(job, "failed", kind, message)
    return "failed"


def finish(locked: LockedAttempt) -> None:
    """Note that a result of this attempt was stored, and end its job where that is the job's."""
    gives_result = locked.gives_result
    if locked.is_active:
        _end(locked.attempt, "done", None, None)
    elif locked.attempt.state != "done" and not (told := locked.attempt.failure_message or "").endswith(CAME_LATE):
        locked.attempt.failure_message = f"{told} {CAME_LATE}".lstrip()
    if gives_result:
        _finish(locked.job, "done", None, None)


async def cancel(session: AsyncSession, job_id: JobId) -> bool:
    """Cancel a waiting job at once, a running one by the answer to its next heartbeat; whether that changed anything.

    One that has ended otherwise is a conflict: who cancels it came too late, and should know.
    """
    job = await lock_job(session, job_id)
    if job.state == "cancelled" or (job.state in UNFINISHED and job.cancel_requested_at is not None):
        return False
    if job.state not in UNFINISHED:
        raise ConflictError(f"Job {job_id} is {job.state}: only unfinished jobs can be cancelled.")
    job.cancel_requested_at = await session.scalar(select(now()))
    if job.state == "queued":
        _finish(job, "cancelled", "cancelled", "Cancelled before it started.")
    await session.flush()
    return True


async def expire_leases(session: AsyncSession) -> Sequence[JobId]:
    """Take away the leases that ran out; their jobs go back to the queue, or are lost. Index: ix_attempt_lease."""
    # Skips attempts whose agent is speaking at this moment: it is alive, and renews its lease.
    due = (
        await session.execute(
            select(Attempt.job_id, Attempt.number)
            .where(Attempt.state.in_(ACTIVE), Attempt.lease_expires_at < now())
            .order_by(Attempt.lease_expires_at)
            .limit(MOST_EXPIRED_AT_ONCE)
        )
    ).all()
    expired = []
    for row in due:
        job = await session.scalar(
            select(Job)
            .where(Job.id == row.job_id)
            .with_for_update(skip_locked=True)
            .execution_options(populate_existing=True)
        )
        if job is None:
            continue
        attempt = await session.scalar(
            select(Attempt)
            .where(
                Attempt.job_id == row.job_id,
                Attempt.number == row.number,
                Attempt.state.in_(ACTIVE),
                Attempt.lease_expires_at < now(),  # it may have been renewed since it was listed
            )
            .with_for_update()
            .execution_options(populate_existing=True)
        )
        if attempt is None:
            continue
        message = f"The lease of attempt {attempt.number} expired: its agent stopped responding."
        _end(attempt, "lost", "infra", message)
        if job.cancel_requested_at is not None:
            _finish(job, "cancelled", "cancelled", message)
        elif not await _finish_by_late_result(session, job):
            await _try_again(session, job, "infra", message)
        expired.append(JobId(job.id))
    await session.flush()
    return expired


async def _finish_by_late_result(session: AsyncSession, job: Job) -> bool:
    """End a job by the newest result that came late while the present attempt was at work; false where there is none.

    Index: ix_report_commit_id.
    """
    late = (
        select(Report.id)
        .where(
            Report.commit_id == job.commit_id,
            Report.job_id == job.id,
            Report.status == "late",
        )
        .order_by(Report.received_at.desc())
        .limit(1)
    )
    accepted = await session.scalar(
        update(Report)
        .where(Report.id == late.scalar_subquery(), Report.status == "late")  # it may have been withdrawn meanwhile
        .values(status="accepted", detected_at=None)
        .returning(Report.id)
        .execution_options(synchronize_session=False)
    )
    if accepted is None:
        return False
    await defer_detection(session, ProjectId(job.project_id))
    _finish(job, "done", None, None)
    return True


async def _try_again(
    session: AsyncSession, job: Job, kind: str, message: str, *, pause_s: float = 0.0
) -> Literal["queued", "lost"]:
    """Queue a job again, unless it was tried often enough."""
    since = job.max_attempts - ATTEMPTS  # it was queued, or queued again by somebody
    if job.attempts >= job.max_attempts:
        _finish(job, "lost", kind, f"{message} That was attempt {job.attempts} of {job.max_attempts}.")
        return "lost"
    await session.flush()
    lost = select(func.count()).where(Attempt.job_id == job.id, Attempt.number > since, Attempt.state == "lost")
    if (await session.scalar(lost) or 0) >= MOST_LOST_AGENTS:
        message = f"{message} {MOST_LOST_AGENTS} agents were lost while running it: look at its commit and their machines, then retry it."
        _finish(job, "lost", kind, message)
        return "lost"
    job.state, job.failure_kind, job.failure_message = "queued", kind, message
    # No notification is sent when a pause is over: waiting agents are called by the listener's next look, a few seconds later.
    job.not_before = await session.scalar(select(_from_now(pause_s))) if pause_s else None
    await session.flush()
    if job.not_before is None:
        await notify_waiting_agents(session)
    return "queued"


def _end(attempt: Attempt, state: str, kind: str | None, message: str | None) -> None:
    attempt.state = state
    attempt.failure_kind, attempt.failure_message = kind, message
    attempt.ended_at = now()


def _finish(job: Job, state: str, kind: str | None, message: str | None) -> None:
    job.state = state
    job.failure_kind, job.failure_message = kind, message
    job.finished_at = now()


async def _active_on(session: AsyncSession, machine_id: MachineId) -> Attempt | None:
    return await session.scalar(select(Attempt).where(Attempt.machine_id == machine_id, Attempt.state.in_(ACTIVE)))


async def _give_again(session: AsyncSession, active: Attempt, agent_id: AgentId, lease_s: float) -> Lease | None:
    if active.agent_id != agent_id or active.state != "leased":
        return None
    row = (
        await session.execute(
            update(Attempt)
            .where(Attempt.id == active.id, Attempt.state == "leased")
            .values(lease_expires_at=_from_now(lease_s))
            .returning(Attempt.job_id, Attempt.number, Attempt.lease_token)
        )
    ).one_or_none()
    return None if row is None else Lease(JobId(row.job_id), row.number, LeaseToken(row.lease_token))


def _from_now(seconds: float) -> ColumnElement[Any]:
    return now() + timedelta(seconds=seconds)
