"""Addresses without a project in their path lead to the same page of the project they ask for, or of the newest one."""

from collections.abc import Callable
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.sources import newest_project
from pullback_service.projects.queries import project_by_name


async def elsewhere(request: Request, session: AsyncSession, address: Callable[[str], str]) -> Response:
    """There, with everything else that was asked for, or to the overview where there is no project."""
    asked = [(name, value) for name, value in request.query_params.multi_items() if name != "project"]
    wanted = request.query_params.get("project")
    found = await newest_project(session) if wanted is None else await project_by_name(session, wanted)
    there = address(found.name) if found else links.overview()
    return RedirectResponse(f"{there}?{urlencode(asked)}" if found and asked else there, status_code=307)
