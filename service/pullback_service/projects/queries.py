"""Finding and making projects."""

from collections.abc import Sequence

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.errors import NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.projects.models import Project
from pullback_service.reports.models import Report

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


async def ensure_project(session: AsyncSession, name: str) -> Project:
    """The project of this name, made where it is missing. Safe against others who do the same. Index: uq_project_name."""
    statement = select(Project).where(Project.name == name)
    found = await session.scalar(statement)
    if found is None:
        await session.execute(insert(Project).values(name=name).on_conflict_do_nothing())
        found = (await session.scalars(statement)).one()
    return found


async def refresh_counts(session: AsyncSession, project_id: ProjectId) -> None:
    """Bring the counts of a project up to date. Index: ix_report_project_received, uq_commit_project_id_sha."""
    reports = (
        select(
            Report.project_id,
            func.count().label("reports"),
            func.count(Report.commit_id.distinct()).label("commits"),
            func.coalesce(func.sum(Report.points), 0).label("points"),
            func.max(Report.received_at).label("last_report_at"),
        )
        .where(Report.project_id == project_id)
        .group_by(Report.project_id)
        .subquery()
    )
    await session.execute(
        update(Project)
        .where(Project.id == reports.c.project_id)
        .values(
            reports=reports.c.reports,
            commits=reports.c.commits,
            points=reports.c.points,
            last_report_at=reports.c.last_report_at,
        )
    )
