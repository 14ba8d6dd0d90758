"""The chore that follows an upload, and the sweep that catches up on missed ones."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.deferred_chores import defer_detection, defer_follow_up
from pullback_service.ids import ProjectId
from pullback_service.models.reports import Report
from pullback_service.projects.queries import count_reports

# A follow-up takes a moment; one that is still missing after this long was forgotten.
MISSED_AFTER_S = 120
MOST_SWEPT_AT_ONCE = 500


async def follow_up(session: AsyncSession, report_id: UUID) -> None:
    """Bring what is derived from reports up to date after one of them, and after all others of its project that wait.

    Each report is taken once, whoever comes twice; chores of one project never run at the same time.
    Index: pk_report, ix_report_unfollowed.
    """
    project_id = await session.scalar(select(Report.project_id).where(Report.id == report_id))
    if project_id is None:
        return  # removed with its project meanwhile
    waiting = (
        await session.execute(
            update(Report)
            .where(Report.project_id == project_id, Report.followed_up_at.is_(None))
            .values(followed_up_at=func.now())
            .returning(Report.id, Report.commit_id, Report.points, Report.received_at)
            .execution_options(synchronize_session=False)
        )
    ).all()
    if waiting:
        await count_reports(
            session,
            ProjectId(project_id),
            reports={row.id: row.commit_id for row in waiting},
            points=sum(row.points for row in waiting),
            newest=max(row.received_at for row in waiting),
        )
        await defer_detection(session, ProjectId(project_id))


async def sweep(session: AsyncSession, *, missed_after_s: float = MISSED_AFTER_S) -> int:
    """Defer chores for what was never followed up and waits for none; returns how many. Index: ix_report_unfollowed."""
    age = timedelta(seconds=missed_after_s)
    rows = (
        await session.execute(
            select(Report.id, Report.project_id)
            .where(Report.followed_up_at.is_(None), Report.received_at < func.now() - age)
            .order_by(Report.received_at)
            .limit(MOST_SWEPT_AT_ONCE)
        )
    ).all()
    oldest = {row.project_id: row.id for row in reversed(rows)}
    return sum([await defer_follow_up(session, ProjectId(project), report) for project, report in oldest.items()])
