"""Chores in the database: deferred inside the transaction that makes them necessary, and what became of them.

procrastinate's own SQL function defers, so its client is not needed here: the chore and its cause are stored both, or
neither.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import ProjectId

QUEUE = "chores"
NAMESPACE = "pullback"
FOLLOW_UP_REPORT = f"{NAMESPACE}:follow_up_report"
MOST_WAITING = 10_000

_DEFER = text(
    "SELECT procrastinate.procrastinate_defer_jobs_v1(ARRAY[ROW("
    ":queue, :task, 0, CAST(:lock AS text), NULL, CAST(:args AS jsonb), NULL"
    ")::procrastinate.procrastinate_job_to_defer_v1])"
)


async def defer(session: AsyncSession, task: str, args: Mapping[str, Any], *, lock: str | None = None) -> None:
    """Let a worker run a task once this transaction is stored; tasks with one lock run one after the other."""
    await session.execute(
        _DEFER, {"queue": QUEUE, "task": task, "lock": lock, "args": orjson.dumps(dict(args)).decode()}
    )


_DEFER_FOLLOW_UP = """
  WITH waiting AS MATERIALIZED (
       SELECT id FROM procrastinate.procrastinate_jobs
        WHERE status = 'todo' AND task_name = %(task)s AND lock = %(lock)s
        LIMIT 1 FOR KEY SHARE SKIP LOCKED)
SELECT procrastinate.procrastinate_defer_jobs_v1(ARRAY[
       ROW(%(queue)s, %(task)s, 0, %(lock)s, NULL, %(args)s::jsonb, NULL)::procrastinate.procrastinate_job_to_defer_v1])
 WHERE NOT EXISTS (SELECT FROM waiting)
"""


async def defer_follow_up(session: AsyncSession, project_id: ProjectId, report_id: UUID) -> bool:
    """Have a report followed up once this transaction is stored, by the chore of its project that waits or (true) a new one.

    A chore follows up all reports of its project that wait, so that one of them serves every upload that comes before it
    begins. It cannot begin before this transaction ends: workers pass over what is locked, be it shared.
    Index: procrastinate_jobs_priority_idx_v1, of chores that wait.
    """
    args = orjson.dumps({"report_id": str(report_id)}).decode()
    values = {"queue": QUEUE, "task": FOLLOW_UP_REPORT, "lock": f"project {project_id}", "args": args}
    return await statements.row(session, _DEFER_FOLLOW_UP, values) is not None


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
               extract(epoch FROM now() - greatest(j.scheduled_at, e.at)) AS age_s
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
    return [
        ChoreState(
            task=row.task.removeprefix(f"{NAMESPACE}:"),
            waiting=row.waiting,
            waiting_s=_number(row.waiting_s),
            running=row.running,
            running_s=_number(row.running_s),
            running_chore=row.running_chore,
            failed=row.failed,
            failed_s=_number(row.failed_s),
            failed_chore=row.failed_chore,
        )
        for row in rows
    ]


async def live_workers(session: AsyncSession, *, within_s: float) -> int:
    """Workers that were heard of lately."""
    found = await session.scalar(
        text(
            "SELECT count(*) FROM procrastinate.procrastinate_workers "
            "WHERE last_heartbeat > now() - make_interval(secs => :within_s)"
        ),
        {"within_s": within_s},
    )
    return int(found or 0)


async def ready_chores(session: AsyncSession) -> int:
    """Chores that wait and could have begun."""
    found = await session.scalar(
        text(
            "SELECT count(*) FROM procrastinate.procrastinate_jobs "
            "WHERE status = 'todo' AND (scheduled_at IS NULL OR scheduled_at <= now())"
        )
    )
    return int(found or 0)


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))
