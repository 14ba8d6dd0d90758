"""Retention: raw values and uploaded files are kept as long as the project wants, everything derived from them forever.

After `raw_days` the process values of a report's points become five numbers and a count; values, ratios, outcomes,
comparisons and exact metrics stay as they are. After `body_days` the uploaded file goes. Both are off unless a project
says otherwise.

It is done in small batches, a transaction each, so that no lock is held for long. What is left to do is read from the
rows themselves: a worker that is killed has lost nothing but its last batch, several workers take different reports, and
doing it again finds nothing.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, Double, Integer, Select, cast, column, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.sql.functions import now
from sqlalchemy.types import BigInteger

from pullback_service.database import Database
from pullback_service.ids import ProjectId
from pullback_service.models.projects import Project
from pullback_service.models.reports import Report
from pullback_service.models.series import Point
from pullback_service.readings.projection import compute_pooled_again
from pullback_service.readings.report_pooling import Spread, spread_of
from pullback_service.steps.projection import keep_steps

REPORTS_AT_ONCE = 50
POINTS_AT_ONCE = 1_000


async def apply(database: Database) -> None:
    """Everything that is due, batch by batch."""
    async with database.reading() as session:
        limited = (
            await session.execute(
                select(Project.id, Project.raw_days, Project.body_days)
                .where(or_(Project.raw_days.is_not(None), Project.body_days.is_not(None)))
                .order_by(Project.id)
            )
        ).all()
    for project in limited:
        project_id = ProjectId(project.id)
        for days, do_batch in ((project.raw_days, roll_up), (project.body_days, drop_bodies)):
            more = days is not None
            while more:
                async with database.writing.begin() as session:
                    more = await do_batch(session, project_id)


async def roll_up(session: AsyncSession, project_id: ProjectId, *, points_at_once: int = POINTS_AT_ONCE) -> bool:
    """Roll one batch of a project's old process values up; whether there may be more. Index: ix_report_raw."""
    reports = (await session.scalars(_old(project_id, Report.rolled_up_at.is_(None), Project.raw_days))).all()
    if not reports:
        return False
    raw = (
        await session.execute(
            select(Point.id, Point.process_values, Point.series_id, Point.commit_id)
            .where(Point.report_id.in_(reports), Point.process_values.is_not(None))
            .limit(points_at_once)
        )
    ).all()
    if raw:
        await _write([row.id for row in raw], [spread_of(row.process_values) for row in raw], session)
        pooled = await compute_pooled_again(session, [(row.series_id, row.commit_id) for row in raw])
        if pooled:
            await keep_steps(session, project_id, pooled)
    if len(raw) < points_at_once:
        await session.execute(update(Report).where(Report.id.in_(reports)).values(rolled_up_at=now()))
    return True


async def drop_bodies(session: AsyncSession, project_id: ProjectId) -> bool:
    """Drop one batch of a project's old files; whether there may be more. Index: ix_report_body."""
    old = _old(project_id, Report.body.is_not(None), Project.body_days)
    dropped = await session.execute(
        update(Report)
        .where(Report.id.in_((await session.scalars(old)).all()))
        .values(body=None, document=None)
        .returning(Report.id)
        .execution_options(synchronize_session=False)
    )
    return len(dropped.all()) > 0


async def _write(ids: Sequence[int], spreads: Sequence[Spread], session: AsyncSession) -> None:
    """Five numbers and a count in the place of process values, all in one statement. Index: pk_point."""
    named = ("n", "low", "q25", "q75", "high")
    arrays = [
        literal(ids, ARRAY(BigInteger)),
        literal([spread.n for spread in spreads], ARRAY(BigInteger)),
        *(literal([getattr(spread, name) for spread in spreads], ARRAY(Double)) for name in named[1:]),
    ]
    given = func.unnest(*arrays).table_valued(*(column(name) for name in ("id", *named)), name="given").render_derived()
    await session.execute(
        update(Point)
        .where(Point.id == given.c.id)
        .values(
            process_values=None,
            process_count=cast(given.c.n, BigInteger),
            process_low=given.c.low,
            process_q25=given.c.q25,
            process_q75=given.c.q75,
            process_high=given.c.high,
        )
        .execution_options(synchronize_session=False)
    )


def _old(project_id: ProjectId, keeps: ColumnElement[bool], days: InstrumentedAttribute[int | None]) -> Select[UUID]:
    """A batch of reports that keep something for longer than the project wants, the oldest first."""
    return (
        select(Report.id)
        .join(Project, Project.id == Report.project_id)
        .where(
            Report.project_id == project_id,
            keeps,
            Report.received_at < now() - func.make_interval(0, 0, 0, cast(days, Integer)),
        )
        .order_by(Report.received_at)
        .limit(REPORTS_AT_ONCE)
        .with_for_update(of=Report, skip_locked=True, key_share=True)
    )
