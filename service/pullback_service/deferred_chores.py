"""Deferring chores, inside the transaction that makes them necessary.

procrastinate's own SQL function defers, so its client is not needed here: the chore and its cause are stored both, or
neither.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import ProjectId

QUEUE = "chores"
NAMESPACE = "pullback"
FOLLOW_UP_REPORT = f"{NAMESPACE}:follow_up_report"
SEND_MESSAGES = f"{NAMESPACE}:send_messages"
DETECT_SERIES = f"{NAMESPACE}:detect_series"
AFTER_ALL_OTHERS = -10
"""The priority of what others need not wait for."""

_DEFER_UNLESS_WAITING = """
  WITH waiting AS MATERIALIZED (
       SELECT id FROM procrastinate.procrastinate_jobs
        WHERE status = 'todo' AND task_name = %(task)s AND lock = %(lock)s
        LIMIT 1 FOR KEY SHARE SKIP LOCKED)
SELECT procrastinate.procrastinate_defer_jobs_v1(ARRAY[
       ROW(%(queue)s, %(task)s, %(priority)s, %(lock)s, NULL, %(args)s::jsonb, NULL)::procrastinate.procrastinate_job_to_defer_v1])
 WHERE NOT EXISTS (SELECT FROM waiting)
"""


async def defer_unless_waiting(
    session: AsyncSession, task: str, args: Mapping[str, Any], *, lock: str, priority: int = 0
) -> bool:
    """Have a task run once this transaction is stored, by its chore with this lock that waits or (true) by a new one.

    A chore that waits cannot begin before this transaction ends: workers pass over what is locked, be it shared.
    Index: procrastinate_jobs_priority_idx_v1, of chores that wait.
    """
    values = {
        "queue": QUEUE, "task": task, "lock": lock, "priority": priority, "args": orjson.dumps(dict(args)).decode(),
    }  # fmt: skip
    return await statements.row(session, _DEFER_UNLESS_WAITING, values) is not None


async def defer_follow_up(session: AsyncSession, project_id: ProjectId, report_id: UUID) -> bool:
    """Have a report followed up once this transaction is stored, by the chore of its project that waits or (true) a new one.

    A chore follows up all reports of its project that wait, so that one of them serves every upload that comes before it
    begins.
    """
    args = {"report_id": str(report_id)}
    return await defer_unless_waiting(session, FOLLOW_UP_REPORT, args, lock=f"project {project_id}")


async def defer_deliveries(session: AsyncSession, channel_id: int) -> bool:
    """Have the messages that wait for a channel sent once this transaction is stored, as `defer_follow_up` does."""
    return await defer_unless_waiting(session, SEND_MESSAGES, {"channel_id": channel_id}, lock=f"channel {channel_id}")


async def defer_detection(session: AsyncSession, project_id: ProjectId) -> bool:
    """Have changes looked for in a project once this transaction is stored, after all other chores, as `defer_follow_up` does."""
    args = {"project_id": int(project_id)}
    return await defer_unless_waiting(
        session, DETECT_SERIES, args, lock=f"detect {project_id}", priority=AFTER_ALL_OTHERS
    )
