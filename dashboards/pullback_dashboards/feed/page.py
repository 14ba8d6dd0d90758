"""`/projects/{project}/feed.atom`: announced incidents, for feed readers."""

from typing import Annotated

from fastapi import Depends, Request, Response

from pullback_dashboards import links
from pullback_dashboards.feed.view import feed
from pullback_dashboards.incidents.filters import IncidentFilters
from pullback_dashboards.incidents.view import line_of
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_service.current_settings import base_of
from pullback_service.incidents.queries import list_incidents, told_at
from pullback_service.projects.queries import project_by_name
from pullback_service.sessions import ReadSession

router = page_router(route_class=RawNamesRoute)

ENTRIES = 50


@router.get("/projects/{project:path}/feed.atom")
async def project_feed(
    request: Request, project: str, session: ReadSession, filters: Annotated[IncidentFilters, Depends()]
) -> Response:
    """The feed, of all machines, workloads, cases, variants and kinds or of those that are named."""
    await project_by_name(session, project)
    listed = await list_incidents(session, filters.told(project), limit=ENTRIES)
    body = feed(
        project,
        [line_of(detail) for detail in listed],
        await told_at(session, [detail.incident.id for detail in listed]),
        base=base_of(request),
        path=links.feed(project, **filters.narrowed),
        incidents=links.incidents(project, **filters.narrowed),
        about=filters.subject,
    )
    return Response(body, media_type="application/atom+xml", headers={"cache-control": "no-cache"})
