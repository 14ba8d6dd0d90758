"""Storing a report while the rest of it is read: Postgres stores on one processor what Python read on another.

Reading 10,000 results takes as long as storing them, so that the two together take little more than half of the time of
one after the other. It is one transaction as ever: where the rest of the report does not hold, nothing was stored.
"""

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.chores.queries import defer_follow_up
from pullback_service.ids import CaseId, ProjectId
from pullback_service.projects.queries import ensure_project
from pullback_service.reports.growing import GrowingReport
from pullback_service.reports.keeping import KeptReport, find
from pullback_service.reports.keeping_parts import PlacedParts, keep_failures, keep_points
from pullback_service.reports.meeting import meet
from pullback_service.reports.placing import place
from pullback_service.reports.rows import begin_row, fill, fill_row, insert_rows
from pullback_service.reports.schemas import ReportHead


async def keep_while_read(
    session: AsyncSession, head: ReportHead, growing: GrowingReport, key: str
) -> KeptReport | None:
    """Store a report of which the head is known; None where it is, or may be, stored already.

    It speaks of a commit: one with uncommitted changes is on no history.
    """
    met = (await meet(session, head.project, [(head, key)]))[0]
    project_id = met.project_id or ProjectId((await ensure_project(session, head.project)).id)
    if met.stored and await find(session, project_id, head.id, key) is not None:
        return None
    its_place = (await place(session, project_id, [head], [met.machine_id]))[0]
    report = begin_row(project_id, its_place, head, key)
    if not await insert_rows(session, [report]):
        return None
    case_ids: dict[bytes, CaseId] = {}
    async for piece in growing.pieces():
        case_ids |= await keep_points(session, project_id, [PlacedParts(head, its_place, piece)], piecewise=True)
    prepared = await growing.prepared()
    whole = PlacedParts(head, its_place, prepared.read.parts)
    if whole.parts.failures:
        await keep_failures(session, whole, case_ids)
    fill(report, prepared, is_on_history=True)
    await fill_row(session, report)
    await defer_follow_up(session, project_id, head.id)
    return KeptReport(report, created=True)
