"""The checkout of an `up` as the repository of its project, in the database that is its own."""

from typing import TYPE_CHECKING

from pullback_cli.service_database import in_database
from pullback_runners.projects.configuration import ProjectFile

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession


def store_repository(url: str, project: ProjectFile) -> None:
    """Say where commits of the project come from: the checkout, unless somebody has named an address.

    A folder means something on this machine alone; so nobody else can say it, and only agents that were given it build it.
    """
    from pullback_service.projects import queries

    async def keep(session: "AsyncSession") -> None:
        project_row = await queries.ensure_project(session, project.name)
        if project_row.repository is None or project_row.repository.startswith("/"):
            project_row.repository = str(project.top)

    in_database(url, "up", keep)
