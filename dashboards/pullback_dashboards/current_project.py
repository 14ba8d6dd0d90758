"""The project that a reader comes from, on pages that speak of none: their addresses carry it, and their bar leads back.

Fleet, machines, the queue, settings, boards and help belong to all projects. `via=NAME` in their address says where the
reader was, so that the address is still all of the page's state and can be shared. A name that is not there, or not
for this reader, is as good as none: it is in an old address or in somebody else's, and the page is not about it.
"""

from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_service.projects.queries import find_project
from pullback_service.sessions import ReadSession


async def coming_from(session: AsyncSession, request: Request) -> str | None:
    """The project that the address carries, or that it narrows the page to, where the reader may see it."""
    for parameter in ("project", links.VIA):
        name = request.query_params.get(parameter)
        project_row = await find_project(session, name) if name else None
        if project_row is not None:
            return project_row.name
    return None


async def _coming_from(request: Request, session: ReadSession) -> str | None:
    return await coming_from(session, request)


ComingFrom = Annotated[str | None, Depends(_coming_from)]


def onward(request: Request, address: str) -> str:
    """An address that carries what that of the request does: where a form leads when it has been sent."""
    return links.via(address, request.query_params.get(links.VIA))
