"""`/projects/{project}/commits/{sha}`: what was measured at a commit."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.history import Commit
from pullback_dashboards.rendering import json_twin, page
from pullback_dashboards.report.page import report_view
from pullback_dashboards.report.view import CaseBlock
from pullback_service.commits.naming import named_commit
from pullback_service.database import ReadSession
from pullback_service.ids import ProjectId
from pullback_service.projects.queries import project_by_name
from pullback_service.reports.queries import StoredReport, document_of, list_reports, report_by_id

router = APIRouter(include_in_schema=False)

_MOST_REPORTS = 100


@dataclass(frozen=True)
class ReportRow:
    """One upload at the commit."""

    href: str
    machine: str
    suite: str | None
    cases: int
    failures: int
    quality: str
    dirty: bool
    late: bool
    started_at: datetime


@dataclass(frozen=True)
class CommitView:
    """A commit with its uploads, and the cases of the newest of them."""

    project: str
    commit: Commit
    reports: tuple[ReportRow, ...]
    cases: tuple[CaseBlock, ...]


async def _read(project: str, sha: str, session: ReadSession) -> CommitView:
    commit = await _commit(session, project, sha)
    stored = await list_reports(session, project=project, commit=commit.sha, before=None, limit=_MOST_REPORTS)
    cases: tuple[CaseBlock, ...] = ()
    if stored:
        newest = await report_by_id(session, stored[0].report.id, with_body=True)
        cases = report_view(newest, await to_thread.run_sync(document_of, newest.report)).cases
    return CommitView(project, commit, tuple(_row(report) for report in stored), cases)


AskedView = Annotated[CommitView, Depends(_read)]
_PATH = "/projects/{project:path}/commits/{sha}"


@router.get(_PATH + ".json")
async def commit_json(view: AskedView) -> Response:
    """The same as JSON."""
    return json_twin(view)


@router.get(_PATH)
async def commit_page(request: Request, view: AskedView) -> Response:
    """The page."""
    title = view.commit.title or f"Commit {view.commit.short}"
    return page(request, "commit.html", title=title, view=view, twins=("json",))


async def _commit(session: AsyncSession, project: str, sha: str) -> Commit:
    known = await project_by_name(session, project)
    found = (await named_commit(session, ProjectId(known.id), sha, where="commit")).commit
    return Commit(found.sha, found.title, found.author, found.authored_at, found.branch)


def _row(stored: StoredReport) -> ReportRow:
    report = stored.report
    return ReportRow(
        href=links.report(str(report.id)),
        machine=stored.machine,
        suite=report.suite,
        cases=report.cases,
        failures=report.failures,
        quality=report.quality,
        dirty=report.dirty,
        late=report.status == "late",
        started_at=report.started_at,
    )
