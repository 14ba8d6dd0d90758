"""Reading how the service is doing."""

from datetime import timedelta
from textwrap import shorten

from sqlalchemy import exists, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now

from pullback_service.chores.queries import chore_states, live_workers
from pullback_service.chores.report_follow_up import MISSED_AFTER_S
from pullback_service.commits.mirrors import unread_mirrors
from pullback_service.incidents.detection import set_aside
from pullback_service.jobs.labels import column_contains_strangers, column_with_device
from pullback_service.jobs.queries import ACTIVE, AWAITS_APPROVAL
from pullback_service.models.agents import SILENT_AFTER_S, Agent
from pullback_service.models.jobs import CLAIMABLE, Attempt, Job
from pullback_service.models.machines import Machine
from pullback_service.models.reports import Report
from pullback_service.readings.projection import unprojected
from pullback_service.status.diagnostics import (
    about_agents,
    about_chores,
    about_detection,
    about_jobs,
    about_mirrors,
    about_readings,
    about_workers,
)
from pullback_service.status.schemas import ChoreStatus, QueueStatus, Status
from pullback_service.steps.projection import unjudged

WORKER_SILENT_AFTER_S = 60
OFFERED_WITHIN_S = 3600
RECENT_S = 7 * 24 * 3600
MOST_LOST = 10
MOST_REFUSING = 10
MOST_SAID = 300  # characters


async def read_status(session: AsyncSession) -> Status:
    """The state of the service, with remedies."""
    chores = await chore_states(session, horizon_s=RECENT_S)
    workers = await live_workers(session, within_s=WORKER_SILENT_AFTER_S)
    agents = await session.scalar(
        select(func.count()).where(Agent.last_seen_at > now() - timedelta(seconds=SILENT_AFTER_S))
    )
    refusing = await session.execute(
        select(Agent.name, Agent.refuses)
        .where(Agent.refuses.is_not(None), Agent.last_seen_at > now() - timedelta(seconds=SILENT_AFTER_S))
        .order_by(Agent.name)
        .limit(MOST_REFUSING)
    )
    jobs = await _queue(session)
    unfollowed = await session.scalar(
        select(func.count()).where(
            Report.followed_up_at.is_(None), Report.received_at < now() - timedelta(seconds=MISSED_AFTER_S)
        )
    )
    overdue = await session.scalar(
        select(func.count()).where(Attempt.state.in_(ACTIVE), Attempt.lease_expires_at < now() - timedelta(seconds=60))
    )
    results = [
        *about_workers(chores, workers=workers, unfollowed=unfollowed or 0, overdue=overdue or 0),
        *about_chores(chores),
        *about_jobs(jobs, agents=agents or 0),
        *about_agents((name, str(reason)) for name, reason in refusing),
        *about_mirrors(await unread_mirrors(session)),
        *about_detection(await set_aside(session)),
        *about_readings(await unprojected(session), await unjudged(session)),
    ]
    return Status(
        status="attention" if results else "well",
        findings=results,
        workers=workers,
        agents=agents or 0,
        chores=[ChoreStatus.model_validate(chore) for chore in chores],
        jobs=jobs,
        unfollowed_reports=unfollowed or 0,
        overdue_leases=overdue or 0,
    )


async def _queue(session: AsyncSession) -> QueueStatus:
    """Index: ix_job_state, ix_job_queue."""
    by_state = await session.execute(select(Job.state, func.count().label("jobs")).group_by(Job.state))
    waiting_s = await session.scalar(
        select(func.extract("epoch", now() - func.min(Job.created_at))).where(text(CLAIMABLE), Job.origin != "idle")
    )
    offered = exists().where(
        Agent.machine_id == Machine.id,
        Agent.last_seen_at > now() - timedelta(seconds=OFFERED_WITHIN_S),
        column_with_device(Job.requires).contained_by(column_with_device(Agent.labels)),
        (Job.machine_id.is_(None)) | (Job.machine_id == Machine.id),
        (Job.trust == "trusted") | ((Machine.accepts == "untrusted") & column_contains_strangers(Agent.labels)),
    )
    anybody = exists().where(Agent.last_seen_at > now() - timedelta(seconds=OFFERED_WITHIN_S))
    unservable = await session.scalar(
        select(func.count()).select_from(Job).where(text(CLAIMABLE), Job.origin != "idle", anybody, ~offered)
    )
    lost = await session.execute(
        select(Job.id, Job.failure_message)
        .where(Job.state == "lost", Job.finished_at > now() - timedelta(seconds=RECENT_S))
        .order_by(Job.id.desc())
        .limit(MOST_LOST)
    )
    rows = lost.all()
    return QueueStatus(
        by_state={row.state: row.jobs for row in by_state},
        waiting_s=None if waiting_s is None else float(waiting_s),
        awaiting_approval=await session.scalar(select(func.count()).select_from(Job).where(AWAITS_APPROVAL)) or 0,
        unservable=unservable or 0,
        lost=[row.id for row in rows],
        lost_because=shorten(rows[0].failure_message or "", MOST_SAID, placeholder="…") if rows else None,
    )
