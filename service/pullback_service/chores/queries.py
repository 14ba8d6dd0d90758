"""The state of chores and of the workers that run them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.deferred_chores import AFTER_ALL_OTHERS, NAMESPACE


@dataclass(frozen=True, slots=True)
class ChoreState:
    """The chores of one kind: how many wait, run and failed, for how long, and which is the oldest or the newest.

    Waiting counts from when a chore could have begun, failing from when it gave up.
    """

    task: str
    waiting: int
    waiting_s: float | None
    running: int
    running_s: float | None
    running_chore: int | None
    failed: int
    failed_s: float | None
    failed_chore: int | None


_STATES = text(
    """
    WITH known AS (
        SELECT j.id, j.task_name, j.status,
               CAST(extract(epoch FROM now() - greatest(j.scheduled_at, e.at)) AS float8) AS age_s
        FROM procrastinate.procrastinate_jobs j
        CROSS JOIN LATERAL (
            SELECT max(at) AS at FROM procrastinate.procrastinate_events e WHERE e.job_id = j.id
        ) e
        WHERE j.status IN ('todo', 'doing', 'failed')
    )
    SELECT task_name AS task,
           count(*) FILTER (WHERE status = 'todo') AS waiting,
           max(age_s) FILTER (WHERE status = 'todo' AND age_s > 0) AS waiting_s,
           count(*) FILTER (WHERE status = 'doing') AS running,
           max(age_s) FILTER (WHERE status = 'doing') AS running_s,
           min(id) FILTER (WHERE status = 'doing') AS running_chore,
           count(*) FILTER (WHERE status = 'failed' AND age_s < :horizon_s) AS failed,
           min(age_s) FILTER (WHERE status = 'failed' AND age_s < :horizon_s) AS failed_s,
           max(id) FILTER (WHERE status = 'failed' AND age_s < :horizon_s) AS failed_chore
    FROM known GROUP BY task_name ORDER BY task_name
    """
)


async def chore_states(session: AsyncSession, *, horizon_s: float) -> Sequence[ChoreState]:
    """Chores by kind; failures older than the horizon are history."""
    rows = await session.execute(_STATES, {"horizon_s": horizon_s})
    return [ChoreState(row.task.removeprefix(f"{NAMESPACE}:"), *row[1:]) for row in rows]


async def live_workers(session: AsyncSession, *, within_s: float) -> int:
    """Workers that were heard of lately."""
    row = await session.scalar(
        text(
            "SELECT count(*) FROM procrastinate.procrastinate_workers "
            "WHERE last_heartbeat > now() - make_interval(secs => :within_s)"
        ),
        {"within_s": within_s},
    )
    return int(row or 0)


_ARE_WAITING = text(
    """
    SELECT EXISTS (
        SELECT FROM procrastinate.procrastinate_jobs j
        WHERE j.status = 'todo' AND j.priority > :priority AND (j.scheduled_at IS NULL OR j.scheduled_at <= now())
          AND NOT EXISTS (SELECT FROM procrastinate.procrastinate_jobs d WHERE d.status = 'doing' AND d.lock = j.lock)
          AND (SELECT max(at) FROM procrastinate.procrastinate_events e WHERE e.job_id = j.id)
              < now() - make_interval(secs => :waited_s))
    """
)


async def are_others_waiting(session: AsyncSession, *, waited_s: float) -> bool:
    """True if chores of usual priority have waited so long although they could begin: long chores hold all workers.

    Index: procrastinate_jobs_priority_idx_v1, of chores that wait.
    """
    return bool(await session.scalar(_ARE_WAITING, {"priority": AFTER_ALL_OTHERS, "waited_s": waited_s}))


async def ready_chores(session: AsyncSession) -> frozenset[int]:
    """Chores that wait and could have begun, by their ids."""
    rows = await session.scalars(
        text(
            "SELECT id FROM procrastinate.procrastinate_jobs "
            "WHERE status = 'todo' AND (scheduled_at IS NULL OR scheduled_at <= now())"
        )
    )
    return frozenset(rows)
