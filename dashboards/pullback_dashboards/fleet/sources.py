"""Asks the service who measures what, and turns its rows into lines."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards.fleet.view import AgentLine, Fleet, JobLine, is_present, progress_of
from pullback_service.agents.queries import SeenAgent, list_agents
from pullback_service.ids import JobId
from pullback_service.jobs.queries import ACTIVE, StoredJob, attempts_of, list_jobs

_MOST_AGENTS = 200
_MOST_RUNNING = 20
MOST_QUEUED = 500  # beyond that the page says "500 or more"


async def fleet_now(session: AsyncSession, now: datetime) -> Fleet:
    """Agents, what runs and how much waits."""
    agents = await list_agents(session, after_id=None, limit=_MOST_AGENTS)
    running: list[StoredJob] = []
    for state in ACTIVE:
        running += await list_jobs(session, project=None, commit=None, state=state, before_id=None, limit=_MOST_RUNNING)
    queued = await list_jobs(session, project=None, commit=None, state="queued", before_id=None, limit=MOST_QUEUED)
    lines = [await job_line(session, job) for job in sorted(running, key=lambda stored: stored.job.id)]
    return Fleet(agents=_agent_lines(agents, now), running=tuple(lines), queued=len(queued))


async def job_line(session: AsyncSession, stored: StoredJob) -> JobLine:
    """A job with where its newest attempt is."""
    job, commit = stored.job, stored.commit
    attempts = await attempts_of(session, JobId(job.id)) if job.attempts or job.state in ACTIVE else []
    newest = attempts[-1] if attempts else None
    failure = job.failure_message or (newest.failure_message if newest and job.state == "failed" else None)
    kind = job.failure_kind or (newest.failure_kind if newest else None)
    return JobLine(
        id=job.id,
        project=stored.project,
        sha=commit.sha,
        title=commit.title,
        suite=job.suite,
        state=job.state,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        created_at=job.created_at,
        finished_at=job.finished_at,
        machine_id=newest.machine_id if newest else None,
        phase=newest.phase if newest and job.state in ACTIVE else None,
        progress=progress_of(newest.progress) if newest else None,
        failure=f"{kind}: {failure}" if failure and kind else failure,
    )


def _agent_lines(agents: Sequence[SeenAgent], now: datetime) -> tuple[AgentLine, ...]:
    """An agent at work speaks through its heartbeats and claims nothing meanwhile: it counts as present."""
    return tuple(
        AgentLine(
            name=seen.agent.name,
            machine=seen.machine,
            machine_id=seen.agent.machine_id,
            last_seen_at=seen.agent.last_seen_at,
            present=seen.job_id is not None or is_present(seen.agent.last_seen_at, now),
            job_id=seen.job_id,
            phase=seen.phase,
        )
        for seen in agents
    )
