"""Computing again what is stored beside the raw values, with the code that computed it first.

For after a release that computes something differently, or a hand in the database. Values that were rolled up stay: what
they were made of is gone.
"""

from dataclasses import dataclass
from statistics import median

from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.database import Database
from pullback_service.ids import ProjectId
from pullback_service.projects.queries import list_projects, refresh_counts
from pullback_service.series.models import Point

POINTS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A batch: how many points were looked at, how many had another value, and the last of them (None at the end)."""

    looked_at: int
    changed: int
    last_id: int | None


async def recompute_values(session: AsyncSession, *, after_id: int, write: bool) -> Recomputed:
    """Medians of process values, for one batch of points in the order of their ids. Index: pk_point."""
    rows = (
        await session.execute(
            select(Point.id, Point.value, Point.process_values)
            .where(Point.id > after_id, Point.process_values.is_not(None))
            .order_by(Point.id)
            .limit(POINTS_AT_ONCE)
        )
    ).all()
    wrong = [{"of_id": row.id, "now": middle} for row in rows if (middle := median(row.process_values)) != row.value]
    if wrong and write:
        connection = await session.connection()  # not the session: of many rows it would ask for their keys
        await connection.execute(
            update(Point).where(Point.id == bindparam("of_id")).values(value=bindparam("now")), wrong
        )
    return Recomputed(len(rows), len(wrong), rows[-1].id if rows else None)


async def recompute_everything(url: str, *, write: bool) -> Recomputed:
    """All values, batch by batch, each a transaction; then the counts of all projects."""
    database = Database(url, pool_size=1)
    looked_at, changed, last_id = 0, 0, 0
    try:
        while True:
            async with database.writing.begin() as session:
                batch = await recompute_values(session, after_id=last_id, write=write)
            looked_at, changed = looked_at + batch.looked_at, changed + batch.changed
            if batch.last_id is None:
                break
            last_id = batch.last_id
        if write:
            async with database.writing.begin() as session:
                for project in await list_projects(session):
                    await refresh_counts(session, ProjectId(project.id))
    finally:
        await database.close()
    return Recomputed(looked_at, changed, None)
