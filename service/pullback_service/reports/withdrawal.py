"""Withdrawing a report that was uploaded by mistake: it is kept, and what it measured leaves history."""

from typing import Final, LiteralString
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.deferred_chores import defer_detection
from pullback_service.ids import ProjectId
from pullback_service.models.reports import Report
from pullback_service.projects.queries import refresh_counts
from pullback_service.readings.projection import compute_again, lock_commits
from pullback_service.reports.queries import StoredReport, report_by_id
from pullback_service.steps.projection import keep_steps, pairs_stated_by

_MEASURED: Final[LiteralString] = "SELECT DISTINCT series_id, commit_id FROM point WHERE report_id = %(report)s"
_REMOVALS: Final[tuple[LiteralString, ...]] = (
    "DELETE FROM point WHERE report_id = %(report)s",
    "DELETE FROM failure WHERE report_id = %(report)s",
    "DELETE FROM comparison WHERE report_id = %(report)s",
)


async def withdraw(session: AsyncSession, report_id: UUID) -> tuple[StoredReport, bool]:
    """Withdraw a report, and whether that is new; its incidents are judged anew by the chore that looks for changes.

    Index: pk_report, ix_point_report_id, ix_failure_report_id, ix_comparison_report_id; as `compute_again`, `keep_steps`.
    """
    stored = await report_by_id(session, report_id)
    locked = await session.scalar(select(Report.status).where(Report.id == report_id).with_for_update(key_share=True))
    if locked == "withdrawn":
        return stored, False
    project_id, named = ProjectId(stored.report.project_id), {"report": report_id}
    measured = set(await statements.rows(session, _MEASURED, named))
    touched = measured | await pairs_stated_by(session, [report_id])
    await lock_commits(session, {commit for _, commit in touched})
    for removal in _REMOVALS:
        await statements.run(session, removal, named)
    stored.report.status = "withdrawn"
    stored.report.points = stored.report.failures = 0  # by these others see at which commits something was measured
    stored.report.detected_at = None
    await session.flush()
    await compute_again(session, measured)
    await keep_steps(session, project_id, touched)
    await refresh_counts(session, project_id)
    await defer_detection(session, project_id)
    return stored, True
