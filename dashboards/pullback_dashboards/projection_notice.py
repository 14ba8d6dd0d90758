"""The notice on a page while results of its project are still being computed: after an upgrade, or after a parent became known late."""

from collections.abc import Iterator

from fastapi import Request
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards.wording.plurals import counted
from pullback_service.sessions import ReadSession
from pullback_service.steps.queries import WaitingCommits, waiting_commits


async def note_unprojected(request: Request, session: ReadSession) -> None:
    """Keep the notice with the request: of the project in its path or its query, else of all."""
    await _note(request, session, others=False)


async def note_unprojected_of_listed(request: Request, session: ReadSession) -> None:
    """The same for a page that names the other projects too: they are read along."""
    await _note(request, session, others=True)


async def _note(request: Request, session: AsyncSession, *, others: bool) -> None:
    project = request.path_params.get("project") or request.query_params.get("project")
    request.state.unprojected = " ".join(_sentences(await waiting_commits(session, project, others=others)))


def _sentences(waiting: WaitingCommits) -> Iterator[str]:
    if waiting.unprojected:
        yield (
            f"After an upgrade, results of {counted(waiting.unprojected, 'commit')} are still being prepared, newest first; "
            "this page may not show them yet."
        )
    if waiting.unjudged:
        yield (
            f"What changed at {counted(waiting.unjudged, 'commit')} is still being computed; this page may not show it yet."
        )


def notice_of(request: Request) -> str:
    """The notice; empty where everything is computed, and on pages that read none of it."""
    notice: str = getattr(request.state, "unprojected", "")
    return notice
