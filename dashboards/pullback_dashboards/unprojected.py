"""The notice of a page while something of its project is still to be computed: after an upgrade, or a parent told late."""

from collections.abc import Iterator

from fastapi import Request

from pullback_dashboards.wording.counting import counted
from pullback_service.sessions import ReadSession
from pullback_service.steps.queries import Waiting, waiting_commits


async def note_unprojected(request: Request, session: ReadSession) -> None:
    """Keep the notice with the request: of the project in its path or its query, else of all."""
    project = request.path_params.get("project") or request.query_params.get("project")
    request.state.unprojected = " ".join(_sentences(await waiting_commits(session, project)))


def _sentences(waiting: Waiting) -> Iterator[str]:
    if waiting.unprojected:
        yield (
            f"Results of {counted(waiting.unprojected, 'older commit')} from before an upgrade are being prepared, newest first: "
            "until then this page may be without them."
        )
    if waiting.unjudged:
        yield (
            f"What changed at {counted(waiting.unjudged, 'commit')} is being computed: until then this page may not tell it."
        )


def notice_of(request: Request) -> str:
    """The notice; empty where everything is computed, and on pages that read none of it."""
    notice: str = getattr(request.state, "unprojected", "")
    return notice
