"""`/projects/{project}/accuracy`: how often Pullback was right, as people judged it."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from pullback_dashboards.accuracy.view import AccuracyView, accuracy_view
from pullback_dashboards.projection_notice import note_unprojected
from pullback_dashboards.rendering import csv_response, page, page_at
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_service import statements
from pullback_service.ids import ProjectId
from pullback_service.incidents.accuracy import judged_incidents, noticed_steps
from pullback_service.projects.queries import project_by_name
from pullback_service.sessions import ReadSession

router = page_router(note_unprojected, route_class=RawNamesRoute)

COLUMNS = ("part", "name", "said", "right", "noise", "withdrawn", "precision", "low", "high")


async def _read(project: str, session: ReadSession) -> AccuracyView:
    project_id = ProjectId((await project_by_name(session, project)).id)
    async with statements.together(session) as ask:
        judged, noticed = ask(judged_incidents(project_id)), ask(noticed_steps(project_id))
    return accuracy_view(project, judged.value, noticed.value)


RequestedView = Annotated[AccuracyView, Depends(_read)]
_PATH = "/projects/{project:path}/accuracy"


@page_at(router, _PATH, RequestedView, csv=lambda view: csv_response(f"accuracy-{view.project}", _table(view), COLUMNS))
async def accuracy_page(request: Request, view: RequestedView) -> Response:
    """The page."""
    return page(
        request,
        "accuracy.html",
        title="Accuracy",
        project=view.project,
        view=view,
        against_baseline=None,
        formats=("json", "csv", "md"),
    )


def _table(view: AccuracyView) -> Iterator[dict[str, Any]]:
    for row in (view.whole, *view.parts):
        low, high = row.interval or (None, None)
        yield {
            "part": row.part,
            "name": row.name,
            "said": row.said,
            "right": row.right,
            "noise": row.noise,
            "withdrawn": row.withdrawn,
            "precision": row.share,
            "low": low,
            "high": high,
        }
