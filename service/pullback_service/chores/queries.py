"""Deferring chores inside the transaction that makes them necessary: both are stored, or neither.

procrastinate's own SQL function does it, so its client is not needed here.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

QUEUE = "chores"
NAMESPACE = "pullback"
FOLLOW_UP_REPORT = f"{NAMESPACE}:follow_up_report"

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
