"""Redirects from addresses without a project in their path to the same page of the requested project, or of the newest one."""

from collections.abc import Callable
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards.choices import FIRST_REPORT, FIRST_STEPS, EmptyPage
from pullback_dashboards.rendering import page
from pullback_dashboards.sources import newest_project
from pullback_service.current_settings import base_of
from pullback_service.projects.queries import project_by_name


async def redirect_to_project(
    request: Request, session: AsyncSession, address: Callable[[str], str], *, title: str, nothing: str
) -> Response:
    """There, with everything else that was asked for; where there is no project, a page that says `nothing` and what to do."""
    parameters = [(name, value) for name, value in request.query_params.multi_items() if name != "project"]
    wanted = request.query_params.get("project")
    project_row = await newest_project(session) if wanted is None else await project_by_name(session, wanted)
    if project_row is None:
        command = FIRST_STEPS.format(base=base_of(request))
        why = EmptyPage("No projects yet", (nothing, FIRST_REPORT), command)
        return page(request, "nothing.html", title=title, nothing=why, scripts=("copy.js",))
    there = address(project_row.name)
    return RedirectResponse(f"{there}?{urlencode(parameters)}" if parameters else there, status_code=307)
