"""What follows an upload, and what makes sure that it does.

Whatever looks at new points is called from `follow_up`, once per report at least: see `detecting.py`.
"""

from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.chores.detecting import detect_after
from pullback_service.chores.queries import FOLLOW_UP_REPORT, defer, waiting_reports
from pullback_service.ids import ProjectId
from pullback_service.projects.queries import refresh_counts
from pullback_service.reports.models import Report

# A follow-up takes a moment; one that is still missing after this long was forgotten.
MISSED_AFTER_S = 120
MOST_SWEPT_AT_ONCE = 500


async def follow_up(session: AsyncSession, report_id: UUID) -> None:
    """Bring what is derived from reports up to date after one of them. Doing it twice changes nothing."""
    project_id = await session.scalar(select(Report.project_id).where(Report.id == report_id))
    if project_id is None:
        return  # removed with its project meanwhile
    await refresh_counts(session, ProjectId(project_id))
    await detect_after(session, report_id)
    await session.execute(
        update(Report).where(Report.id == report_id, Report.followed_up_at.is_(None)).values(followed_up_at=func.now())
    )


async def sweep(session: AsyncSession, *, missed_after_s: float = MISSED_AFTER_S) -> int:
    """Defer again what was never followed up and what no chore waits for; returns how many. Index: ix_report_unfollowed."""
    age = func.make_interval(0, 0, 0, 0, 0, 0, missed_after_s)
    rows = (
        await session.execute(
            select(Report.id, Report.project_id)
            .where(
                Report.followed_up_at.is_(None),
                Report.received_at < func.now() - age,
                Report.id.not_in(await waiting_reports(session)),
            )
            .order_by(Report.received_at)
            .limit(MOST_SWEPT_AT_ONCE)
        )
    ).all()
    for row in rows:
        await defer(session, FOLLOW_UP_REPORT, {"report_id": str(row.id)}, lock=f"project {row.project_id}")
    return len(rows)
