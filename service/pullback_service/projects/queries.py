"""Finding and making projects."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import ScalarSelect, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.caller import caller_of
from pullback_service.errors import ConflictError, ForbiddenError, MissingObject, NotFoundError, RequestError
from pullback_service.ids import ProjectId
from pullback_service.models.projects import Project
from pullback_service.models.reports import Report
from pullback_service.name_characters import in_one_form
from pullback_service.projects.project_names import refuse_unseen
from pullback_service.projects.schemas import ProjectChange

MOST_PROJECTS = 1_000
_FOUND = "projects"
_ALL = "all projects"


async def list_projects(
    session: AsyncSession, *, after: str | None = None, limit: int = MOST_PROJECTS
) -> Sequence[Project]:
    """Projects by name. Index: uq_project_name."""
    if after is None and (known := session.info.get(_ALL)) is not None:
        return cast("Sequence[Project]", known[:limit])
    statement = select(Project).order_by(Project.name).limit(limit)
    if after is not None:
        statement = statement.where(Project.name > after)
    return (await session.scalars(statement)).all()


_BY_NAME = select(Project).where(Project.name == bindparam("name"))
# For what the first does not find: a name typed in decomposed letters, or a project that was made before they were composed.
_BY_FORM = select(Project).where(func.normalize(Project.name) == bindparam("form")).order_by(Project.id).limit(1)


async def project_by_name(session: AsyncSession, name: str) -> Project:
    """A project; one that is not there, or not for the caller, is an error. Index: uq_project_name."""
    project_row = await find_project(session, name)
    if project_row is None:
        raise _unknown(session, name)
    return project_row


async def find_project(session: AsyncSession, name: str) -> Project | None:
    """A project, or none where there is no such for the caller. Index: uq_project_name."""
    if (known := session.info.get(_FOUND, {}).get(name)) is not None:
        return cast("Project", known)
    project_row: Project | None = await session.scalar(_BY_NAME, {"name": name})
    return project_row or await session.scalar(_BY_FORM, {"form": in_one_form(name)})


def remember_projects(session: AsyncSession, projects: Sequence[Project], *, are_all: bool) -> None:
    """Let projects by name, or the list of all, be found without asking, in a session that only reads: it sees one state."""
    session.info.setdefault(_FOUND, {}).update({project.name: project for project in projects})
    if are_all:
        session.info[_ALL] = projects


def id_of(name: str) -> ScalarSelect[int]:
    """The id of a project, for conditions of lists; null where there is none. Index: uq_project_name."""
    named = select(Project.id).where(Project.name.in_({name, in_one_form(name)}))
    return named.order_by((Project.name == name).desc()).limit(1).scalar_subquery()


async def ensure_project(session: AsyncSession, name: str) -> Project:
    """The project of this name, made where it is missing and the caller may make projects. Index: uq_project_name.

    Safe against others who do the same.
    """
    project_row = await find_project(session, name)
    if project_row is None:
        caller = caller_of(session)
        if caller is not None and not (caller.may_make_projects and caller.projects is None):
            raise _unknown(session, name)
        refuse_unseen(name)
        await session.execute(insert(Project).values(name=in_one_form(name)).on_conflict_do_nothing())
        project_row = (await session.scalars(_BY_NAME, {"name": in_one_form(name)})).one()
    return project_row


async def create_project(session: AsyncSession, name: str, *, public_read: bool) -> Project:
    """Make a project; one of this name is a conflict. Index: uq_project_name."""
    caller = caller_of(session)
    if caller is not None and caller.projects is not None:  # before any look: who may not know of others learns of none
        raise ForbiddenError(
            f"{caller.name[:1].upper()}{caller.name[1:]} is limited to one project and cannot create others: "
            "use a token for all projects."
        )
    refuse_unseen(name)
    made: Project | None = None
    if await find_project(session, name) is None:
        made = await session.scalar(
            insert(Project)
            .values(name=in_one_form(name), public_read=public_read)
            .on_conflict_do_nothing()
            .returning(Project)
        )
    if made is None:
        raise ConflictError(f"Project {name!r} exists already: change it with `pullback project set {name}`.")
    return made


async def change_project(session: AsyncSession, name: str, change: ProjectChange) -> tuple[Project, dict[str, Any]]:
    """Update the given settings only; the project, and those settings. Index: uq_project_name."""
    project = await project_by_name(session, name)
    changed = change.model_dump(exclude_unset=True)
    if change.public_read is None:
        changed.pop("public_read", None)
    for setting, value in changed.items():
        setattr(project, setting, value)
    await session.flush()
    return project, changed


def _unknown(session: AsyncSession, name: str) -> RequestError:
    caller = caller_of(session)
    if caller is not None and caller.projects is not None and not caller.anonymous:
        return ForbiddenError(
            f"{caller.name[:1].upper()}{caller.name[1:]} is limited to another project than {name!r}: "
            "check the name, or use a token for that project.",
            missing=MissingObject("project", name),
        )
    if caller is not None and not caller.may_make_projects:
        return NotFoundError(
            f"There is no project {name!r}: check the name (GET /api/v1/projects lists them), "
            f"or create it with `pullback project create {name}`.",
            missing=MissingObject("project", name),
        )
    return NotFoundError(
        f"There is no project {name!r}: create it by uploading or requesting a job, "
        f"or with `pullback project create {name}`.",
        missing=MissingObject("project", name),
    )


async def count_reports(
    session: AsyncSession, project_id: ProjectId, *, reports: Mapping[UUID, int], points: int, newest: datetime
) -> None:
    """Add new reports, given with their commits, to the counts of a project. Index: ix_report_commit_id.

    Takes as long as there are new reports, not as long as there are reports. Removing some calls for `refresh_counts`.
    """
    known = await session.scalars(
        select(Report.commit_id)
        .where(
            Report.commit_id.in_(set(reports.values())), Report.id.not_in(reports), Report.followed_up_at.is_not(None)
        )
        .distinct()
    )
    commits = len(set(reports.values()) - set(known))
    await session.execute(
        update(Project)
        .where(Project.id == project_id)
        .values(
            reports=Project.reports + len(reports),
            commits=Project.commits + commits,
            points=Project.points + points,
            last_report_at=func.greatest(Project.last_report_at, newest),
        )
    )


async def refresh_counts(session: AsyncSession, project_id: ProjectId) -> None:
    """Count the reports of a project anew, those that were followed up. Index: ix_report_project_received, uq_commit_project_id_sha."""
    reports = (
        select(
            Report.project_id,
            func.count().label("reports"),
            func.count(Report.commit_id.distinct()).label("commits"),
            func.coalesce(func.sum(Report.points), 0).label("points"),
            func.max(Report.received_at).label("last_report_at"),
        )
        .where(Report.project_id == project_id, Report.followed_up_at.is_not(None), Report.status != "withdrawn")
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
