"""Recomputation of everything that is derived from the stored raw values, by the code that computed it first.

For after a release that computes something differently, or a hand in the database. Values that were rolled up stay: what
they were made of is gone.
"""

from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import itemgetter
from statistics import median
from typing import LiteralString, NamedTuple, Protocol

from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.database import Database
from pullback_service.ids import ProjectId
from pullback_service.models.series import Point
from pullback_service.projects.queries import list_projects, refresh_counts
from pullback_service.readings.projection import POINTS_AT_ONCE, project_everything, renew, wrong_readings
from pullback_service.roles import ALL_PROJECTS
from pullback_service.rule_version import RULE
from pullback_service.steps.projection import judge_everything, renew_steps, wrong_steps

VALUES_AT_ONCE = 5_000
COMMITS_AT_ONCE = 200

_COMMITS: LiteralString = """
SELECT id, projected, (SELECT count(*) FROM point WHERE commit_id = commit.id)
  FROM commit
 WHERE id > %(after)s
 ORDER BY id
 LIMIT %(most)s
"""

_JUDGED_COMMITS: LiteralString = """
SELECT id, project_id, projected AND judged_by >= %(rule)s FROM commit WHERE id > %(after)s ORDER BY id LIMIT %(most)s
"""
_WITHDRAWN: LiteralString = """
UPDATE report SET points = 0, failures = 0 WHERE status = 'withdrawn' AND (points, failures) <> (0, 0)
"""
"""Migration 0032, once more: a release before it may have withdrawn reports since, while an upgrade was under way."""
_NO_READING: LiteralString = """
DELETE FROM step
 WHERE via <> 'compared'
   AND NOT EXISTS (SELECT FROM reading WHERE reading.series_id = step.series_id AND reading.commit_id = step.commit_id)
"""


@dataclass(frozen=True, slots=True)
class RebuiltBatch:
    """A batch: how many values were looked at, how many were wrong, and the last id of the batch (None at the end)."""

    looked_at: int
    changed: int
    last_id: int | None


@dataclass(frozen=True, slots=True)
class RebuiltBatches:
    """Values of points, readings and steps."""

    values: RebuiltBatch
    readings: RebuiltBatch
    steps: RebuiltBatch


class WrongCounts(NamedTuple):
    """Counts of readings that differ from their points, and of readings whose steps are wrong."""

    readings: int
    steps: int


async def rebuild_values(session: AsyncSession, *, after_id: int, write: bool) -> RebuiltBatch:
    """Medians of process values, for one batch of points in the order of their ids. Index: pk_point."""
    rows = (
        await session.execute(
            select(Point.id, Point.value, Point.process_values)
            .where(Point.id > after_id, Point.process_values.is_not(None))
            .order_by(Point.id)
            .limit(VALUES_AT_ONCE)
        )
    ).all()
    wrong = [{"of_id": row.id, "now": middle} for row in rows if (middle := median(row.process_values)) != row.value]
    if wrong and write:
        connection = await session.connection()  # not the session: of many rows it would ask for their keys
        await connection.execute(
            update(Point).where(Point.id == bindparam("of_id")).values(value=bindparam("now")), wrong
        )
    return RebuiltBatch(len(rows), len(wrong), rows[-1].id if rows else None)


async def rebuild_readings(session: AsyncSession, *, after_id: int, write: bool) -> RebuiltBatch:
    """Readings of one batch of commits in the order of their ids. Index: pk_commit; as `wrong_readings`.

    Of commits that are not projected nothing is wrong; where `write` is said they are projected.
    """
    rows = await statements.rows(session, _COMMITS, {"after": after_id, "most": COMMITS_AT_ONCE})
    through = accumulate(points for *_, points in rows)
    batch = [row for row, total in zip(rows, through, strict=True) if row is rows[0] or total <= POINTS_AT_ONCE]
    points = sum(points for *_, points in batch)
    known = [commit_id for commit_id, is_projected, _ in batch if is_projected]
    wrong = await wrong_readings(session, known)
    if write:
        await renew(session, [commit_id for commit_id, *_ in batch], wrong)
    return RebuiltBatch(points, len(wrong), batch[-1][0] if batch else None)


async def rebuild_steps(session: AsyncSession, *, after_id: int, write: bool) -> RebuiltBatch:
    """Steps of one batch of commits in the order of their ids. Index: pk_commit; as `wrong_steps`.

    Of commits that nobody judged yet nothing is wrong; where `write` is said they are left to `judge_everything`.
    """
    rows = await statements.rows(session, _JUDGED_COMMITS, {"after": after_id, "most": COMMITS_AT_ONCE, "rule": RULE})
    changed = 0
    for project_id, group in groupby(sorted(rows, key=itemgetter(1)), key=itemgetter(1)):
        wrong = await wrong_steps(session, project_id, [commit_id for commit_id, _, is_judged in group if is_judged])
        if wrong and write:
            await renew_steps(session, project_id, wrong)
        changed += len(wrong)
    return RebuiltBatch(len(rows), changed, rows[-1][0] if rows else None)


async def count_wrong(url: str) -> WrongCounts:
    """Count the errors in what is derived from the points of a database."""
    database = Database(url, pool_size=1).seeing(ALL_PROJECTS)
    try:
        return WrongCounts(
            (await _all_batches(database, rebuild_readings, write=False)).changed,
            (await _all_batches(database, rebuild_steps, write=False)).changed,
        )
    finally:
        await database.close()


async def rebuild_everything(url: str, *, write: bool) -> RebuiltBatches:
    """All values, readings and steps, batch by batch, each a transaction; then the counts of all projects."""
    database = Database(url, pool_size=1).seeing(ALL_PROJECTS)
    try:
        values = await _all_batches(database, rebuild_values, write=write)
        readings = await _all_batches(database, rebuild_readings, write=write)
        if write:
            async with database.writing.begin() as session:
                await statements.run(session, _NO_READING, {})
            async for _ in judge_everything(database):
                pass
        steps = await _all_batches(database, rebuild_steps, write=write)
        if write:
            async with database.writing.begin() as session:
                await statements.run(session, _WITHDRAWN, {})
                for project in await list_projects(session):
                    await refresh_counts(session, ProjectId(project.id))
    finally:
        await database.close()
    return RebuiltBatches(values, readings, steps)


async def project_all(url: str) -> int:
    """Project every commit that is not, and judge it, as a worker does; how many there were."""
    database, done = Database(url, pool_size=1).seeing(ALL_PROJECTS), 0
    try:
        async for so_far in project_everything(database):
            done = so_far
        async for _ in judge_everything(database):
            pass
    finally:
        await database.close()
    return done


class _Batch(Protocol):
    async def __call__(self, session: AsyncSession, *, after_id: int, write: bool) -> RebuiltBatch: ...


async def _all_batches(database: Database, rebuild: _Batch, *, write: bool) -> RebuiltBatch:
    looked_at, changed, last_id = 0, 0, 0
    while True:
        async with database.writing.begin() as session:
            batch = await rebuild(session, after_id=last_id, write=write)
        looked_at, changed = looked_at + batch.looked_at, changed + batch.changed
        if batch.last_id is None:
            return RebuiltBatch(looked_at, changed, None)
        last_id = batch.last_id
