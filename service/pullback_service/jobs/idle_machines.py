"""Work of idle machines: a commit against itself (A/A), so that their noise is known.

A machine repeats a part of what it measured last on a device: that commit builds there and that suite runs there. Of its workloads
the one is taken that was looked at longest ago. Such a job stands behind everything else in the queue. A device of a machine
gets one in so many hours at most, and devices of one machine take turns.
"""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import exists, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now

from pullback_service.ids import JobId, MachineId
from pullback_service.job_channel import notify_waiting_agents
from pullback_service.jobs.labels import CPU, DEVICE
from pullback_service.jobs.queries import ACTIVE, UNFINISHED
from pullback_service.models.agents import SILENT_AFTER_S, Agent
from pullback_service.models.jobs import Attempt, Job
from pullback_service.models.reports import Comparison, Report
from pullback_service.models.series import Case, Point, Series

LOWEST_PRIORITY = -1000
TIMEOUT_S = 3600.0
IDLE_AFTER_S = 600
MOST_MACHINES = 100


@dataclass(frozen=True, slots=True)
class LastMeasurement:
    """The last measurement of a machine, and the workload of it whose noise was measured longest ago."""

    job: Job
    workload: str
    device: str


async def occupy_idle_machines(
    session: AsyncSession, *, every_hours: float, idle_after_s: float = IDLE_AFTER_S
) -> list[JobId]:
    """Queue an A/A job for each machine that waits for work, on the device that had none for longest; returns those that are new.

    What a machine found no time for until the next one is due is cancelled. Doing it twice, or by two workers at once,
    makes no second job. Index: ix_attempt_machine_id, uq_job_idle_machine.
    """
    await _give_up_waiting(session, every_hours)
    on_device = func.coalesce(Agent.labels[DEVICE].astext, CPU)
    idle_jobs = (
        Job.machine_id == Agent.machine_id,
        Job.origin == "idle",
        func.coalesce(Job.requires[DEVICE].astext, CPU) == on_device,
    )
    last = select(func.max(Job.id)).where(*idle_jobs).correlate(Agent).scalar_subquery()
    due = await session.execute(
        select(Agent.machine_id, on_device)
        .where(
            Agent.last_seen_at > now() - timedelta(seconds=SILENT_AFTER_S),
            exists().where(Attempt.machine_id == Agent.machine_id),
            ~exists().where(
                Attempt.machine_id == Agent.machine_id,
                Attempt.state.in_(ACTIVE) | (Attempt.ended_at > now() - timedelta(seconds=idle_after_s)),
            ),
            ~exists().where(
                *idle_jobs, Job.state.in_(UNFINISHED) | (Job.created_at > now() - timedelta(hours=every_hours))
            ),
        )
        .distinct()
        .add_columns(last)
        .order_by(Agent.machine_id, last.asc().nulls_first(), on_device)
        .limit(MOST_MACHINES)
    )
    made = []
    for machine_id, device, _ in due.all():
        repeated = await _to_repeat(session, MachineId(machine_id), device)
        if repeated is None:
            continue
        job_id = await session.scalar(
            insert(Job)
            .values(
                project_id=repeated.job.project_id,
                commit_id=repeated.job.commit_id,
                reference_id=repeated.job.commit_id,
                suite=f"{repeated.job.suite.partition(':')[0]}:{repeated.workload}",
                kind="compare",
                priority=LOWEST_PRIORITY,
                requires={} if repeated.device == CPU else {DEVICE: repeated.device},
                timeout_s=TIMEOUT_S,
                machine_id=machine_id,
                origin="idle",
            )
            .on_conflict_do_nothing()
            .returning(Job.id)
        )
        if job_id is not None:
            made.append(JobId(job_id))
    if made:
        await notify_waiting_agents(session)
    return made


async def _give_up_waiting(session: AsyncSession, every_hours: float) -> None:
    """Cancel what waits for so long that the next one is due: its agent does not do such jobs, or has no time."""
    stale = (
        select(Job.id)
        .where(
            Job.origin == "idle", Job.state == "queued", Job.created_at < now() - timedelta(hours=max(every_hours, 1))
        )
        .with_for_update(skip_locked=True)
    )
    await session.execute(
        update(Job)
        .where(Job.id.in_(stale))
        .values(
            state="cancelled",
            finished_at=now(),
            failure_kind="cancelled",
            failure_message="The machine was not idle in time.",
        )
        .execution_options(synchronize_session=False)
    )


async def _to_repeat(session: AsyncSession, machine_id: MachineId, device: str) -> LastMeasurement | None:
    """The newest trusted run of a machine on a device with a result, and one of its workloads; None where there is none."""
    newest = (
        await session.execute(
            select(Job, Report.id)
            .join(Report, Report.job_id == Job.id)
            .join(Attempt, (Attempt.job_id == Job.id) & (Attempt.number == Report.attempt))
            .where(
                Attempt.machine_id == machine_id,
                Attempt.state == "done",
                Job.kind == "run",
                Job.trust == "trusted",
                func.coalesce(Job.requires[DEVICE].astext, CPU) == device,
                Report.status == "accepted",
                Report.points > 0,
                ~Report.dirty,  # files without git: the commit cannot be had again by its name
            )
            .order_by(Attempt.id.desc())
            .limit(1)
        )
    ).one_or_none()
    if newest is None:
        return None
    job, report_id = newest
    measured = (
        select(Case.workload)
        .join(Series, Series.case_id == Case.id)
        .join(Point, Point.series_id == Series.id)
        .where(Point.report_id == report_id)
        .distinct()
        .subquery()
    )
    looked_at = (
        select(Case.workload, func.max(Comparison.id).label("last"))
        .join(Case, Case.id == Comparison.case_id)
        .where(
            Comparison.machine_id == machine_id,
            Comparison.reference_id == Comparison.candidate_id,
            func.coalesce(Case.device, CPU) == device,
        )
        .group_by(Case.workload)
        .subquery()
    )
    workload = await session.scalar(
        select(measured.c.workload)
        .join(looked_at, looked_at.c.workload == measured.c.workload, isouter=True)
        .order_by(looked_at.c.last.asc().nulls_first(), measured.c.workload)
        .limit(1)
    )
    return None if workload is None else LastMeasurement(job, workload, device)
