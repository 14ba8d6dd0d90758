"""The notice of a page that reads readings while commits of its project have none yet, after an upgrade."""

from fastapi import Request

from pullback_dashboards.wording.counting import counted
from pullback_service.readings.queries import unprojected_commits
from pullback_service.sessions import ReadSession


async def note_unprojected(request: Request, session: ReadSession) -> None:
    """Keep the notice with the request: of the project in its path or its query, else of all."""
    project = request.path_params.get("project") or request.query_params.get("project")
    waiting = await unprojected_commits(session, project)
    if waiting:
        request.state.unprojected = (
            f"After an upgrade, results of {counted(waiting, 'commit')} are still being prepared, newest first; "
            "this page may not show them yet."
        )


def notice_of(request: Request) -> str:
    """The notice; empty where all commits have their readings, and on pages that read none."""
    notice: str = getattr(request.state, "unprojected", "")
    return notice
