"""Making, listing and changing projects."""

from urllib.parse import quote

from fastapi import Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.audit.trail import note
from pullback_service.deferred_chores import defer_detection
from pullback_service.endpoints.tables import PROJECTS
from pullback_service.errors import ConflictError, InvalidInputError, NotFoundError
from pullback_service.fields import Name
from pullback_service.ids import ProjectId
from pullback_service.listing import LISTED, KnownListing
from pullback_service.paging import Page, page_of, read_cursor
from pullback_service.problems import documented
from pullback_service.projects import queries
from pullback_service.projects.schemas import ProjectChange, ProjectRequest, ProjectSummary
from pullback_service.routers import api_router
from pullback_service.sessions import ReadSession, WriteSession

router = api_router(prefix=f"{API}/projects", tags=["projects"])

Place = TypeAdapter(tuple[Name])


@router.get("", response_model=Page[ProjectSummary], responses=LISTED)
async def list_projects(listing: KnownListing) -> Response:
    """Projects by name."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[ProjectSummary]:
        place = read_cursor(cursor, Place)
        rows = await queries.list_projects(session, after=place[0] if place else None, limit=limit + 1)
        return page_of(rows, limit, item=ProjectSummary.model_validate, key=lambda row: (row.name,))

    return await listing.give(read, PROJECTS)


@router.post("", status_code=201, responses=documented(ConflictError, InvalidInputError))
async def create_project(request: ProjectRequest, response: Response, session: WriteSession) -> ProjectSummary:
    """Make a project before its first upload."""
    project = await queries.create_project(session, request.name, public_read=request.public_read)
    note(session, subject=f"project {request.name}", project=project.name, **request.model_dump(exclude={"name"}))
    response.headers["Location"] = f"{API}/projects/{quote(request.name)}"
    return ProjectSummary.model_validate(project)


@router.get("/{name:path}", responses=documented(NotFoundError, InvalidInputError))
async def read_project(session: ReadSession, name: Name) -> ProjectSummary:
    """A project."""
    return ProjectSummary.model_validate(await queries.project_by_name(session, name))


@router.patch("/{name:path}", responses=documented(NotFoundError, InvalidInputError))
async def change_project(change: ProjectChange, session: WriteSession, name: Name) -> ProjectSummary:
    """Update the given settings only."""
    project, changed = await queries.change_project(session, name, change)
    if changed.keys() & {"trunk", "backfill"}:
        await defer_detection(session, ProjectId(project.id))
    note(session, subject=f"project {name}", project=name, **changed)
    return ProjectSummary.model_validate(project)
