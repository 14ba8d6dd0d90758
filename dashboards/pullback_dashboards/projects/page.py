"""`/projects`: all projects, with what changed in each: its open incidents, else its latest changes. `/` leads here where there are several."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.choices import FIRST_REPORT, FIRST_STEPS
from pullback_dashboards.history import History
from pullback_dashboards.incidents.view import IncidentLine
from pullback_dashboards.news.sources import lately
from pullback_dashboards.news.view import News, NewsLimits, collect_news
from pullback_dashboards.overview.cache import TimedCache
from pullback_dashboards.overview.incidents import COUNTED, IncidentLines
from pullback_dashboards.overview.sources import present_asked
from pullback_dashboards.projection_notice import note_unprojected, notice_of
from pullback_dashboards.rendering import csv_response, page, page_at
from pullback_dashboards.routers import page_router
from pullback_service import statements
from pullback_service.current_settings import base_of
from pullback_service.ids import ProjectId
from pullback_service.incidents.queries import open_incidents
from pullback_service.models.projects import Project
from pullback_service.projects.queries import list_projects
from pullback_service.sessions import ReadSession

router = page_router(note_unprojected)

TOLD = NewsLimits(commits=5, items=2, cases=1)
MOST_TOLD = 25
"""Of how many projects changes are told: those that were uploaded to last."""
COLUMNS = (
    "project",
    "last_report_at",
    "reports",
    "commits",
    "incidents",
    "newest_incident",
    "changes",
    "newest_change",
)
_LATELY: TimedCache[History] = TimedCache(MOST_TOLD)


@dataclass(frozen=True)
class ProjectRow:
    """A project, and what changed at its newest commits on the machine that measured last."""

    name: str
    href: str
    reports: int
    commits: int
    last_report_at: datetime | None
    changes: tuple[News, ...] = ()
    more: int = 0
    is_told: bool = True
    """True if it was looked at what changed."""
    incidents: tuple[IncidentLine, ...] = ()
    incidents_left_out: int = 0


@dataclass(frozen=True)
class ProjectsView:
    """The content of the page, the project that was uploaded to last first."""

    rows: tuple[ProjectRow, ...]


async def _read(request: Request, session: ReadSession) -> ProjectsView:
    projects = sorted(await list_projects(session), key=_by_news)
    notice = notice_of(request)
    told = [await _row(session, project, notice) for project in projects[:MOST_TOLD]]
    return ProjectsView((*told, *(_plain(project, is_told=False) for project in projects[MOST_TOLD:])))


def _by_news(project: Project) -> tuple[float, str]:
    newest = project.last_report_at
    return (float("inf") if newest is None else -newest.timestamp(), project.name)


async def _row(session: AsyncSession, project: Project, notice: str) -> ProjectRow:
    project_id = ProjectId(project.id)
    async with statements.together(session) as ask:
        measuring = present_asked(ask, project_id, None, notice=notice)
        incidents = ask(open_incidents(project_id, limit=COUNTED))
    if (measured := measuring()) is None:
        return _plain(project)
    history = await _LATELY.get(measured.present.key, lambda: lately(session, project_id, measured.machine.id))
    news = collect_news(history, TOLD, project=project.name, machine=None)
    listed = incidents.value
    return replace(
        _plain(project, news.news, news.left_out),
        incidents=await IncidentLines(listed[: TOLD.items]).read(session),
        incidents_left_out=max(0, len(listed) - TOLD.items),
    )


def _plain(project: Project, changes: Sequence[News] = (), more: int = 0, *, is_told: bool = True) -> ProjectRow:
    return ProjectRow(
        project.name,
        links.overview(project.name),
        project.reports,
        project.commits,
        project.last_report_at,
        tuple(changes),
        more,
        is_told,
    )


RequestedView = Annotated[ProjectsView, Depends(_read)]


@page_at(router, "/projects", RequestedView, csv=lambda view: csv_response("projects", _table(view), COLUMNS))
async def projects_page(request: Request, view: RequestedView) -> Response:
    """The page."""
    return page(
        request,
        "projects.html",
        title="Projects",
        view=view,
        against_baseline=None,
        formats=("json", "csv", "md"),
        first_report=FIRST_REPORT,
        first_steps=FIRST_STEPS.format(base=base_of(request)),
        scripts=("copy.js",) if not view.rows else (),
    )


def _table(view: ProjectsView) -> Iterator[dict[str, Any]]:
    for row in view.rows:
        newest = row.changes[0] if row.changes else None
        yield {
            "project": row.name,
            "last_report_at": row.last_report_at,
            "reports": row.reports,
            "commits": row.commits,
            "incidents": len(row.incidents) + row.incidents_left_out if row.is_told else None,
            "newest_incident": row.incidents[0].sentence if row.incidents else None,
            "changes": len(row.changes) + row.more if row.is_told else None,
            "newest_change": f"{newest.who}{newest.text} ({newest.sha[:9]})" if newest else None,
        }
