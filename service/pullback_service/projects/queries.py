"""Finding projects."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.errors import NotFoundError
from pullback_service.projects.models import Project

MOST_PROJECTS = 1_000


async def list_projects(session: AsyncSession) -> Sequence[Project]:
    """All projects by name. Index: uq_project_name."""
    return (await session.scalars(select(Project).order_by(Project.name).limit(MOST_PROJECTS))).all()


async def project_by_name(session: AsyncSession, name: str) -> Project:
    """A project. Index: uq_project_name."""
    found = await session.scalar(select(Project).where(Project.name == name))
    if found is None:
        raise NotFoundError(f"There is no project {name!r}: the first upload or job for a project makes it.")
    return found
