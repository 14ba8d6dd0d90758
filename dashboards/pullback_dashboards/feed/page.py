"""`/projects/{project}/feed.atom`: what changed lately, for feed readers."""

from fastapi import Request, Response

from pullback_dashboards import links, sources
from pullback_dashboards.feed.view import feed
from pullback_dashboards.history import History
from pullback_dashboards.news.sources import lately
from pullback_dashboards.news.view import LATELY, tell
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import WholeNames
from pullback_service.ids import ProjectId
from pullback_service.projects.queries import project_by_name
from pullback_service.sessions import ReadSession

router = page_router(route_class=WholeNames)


@router.get("/projects/{project:path}/feed.atom")
async def project_feed(request: Request, project: str, session: ReadSession, machine: str | None = None) -> Response:
    """The feed, on one machine: the one that is named, or the one with the newest commit."""
    known = await project_by_name(session, project)
    project_id = ProjectId(known.id)
    machines = await sources.machines_of(session, project_id)
    history = History()
    if machines:
        chosen = sources.chosen(machines, machine)
        history = await lately(session, project_id, chosen.id)
    body = feed(
        project,
        tell(history, LATELY, project=project, machine=machine).news,
        history.commits,
        base=str(request.base_url).rstrip("/"),
        path=links.feed(project, machine=machine),
        overview=links.overview(project, machine=machine),
    )
    return Response(body, media_type="application/atom+xml", headers={"cache-control": "no-cache"})
