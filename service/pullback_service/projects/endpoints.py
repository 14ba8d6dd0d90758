"""Making, listing and changing projects."""

from urllib.parse import quote

from fastapi import APIRouter, Response

from pullback_service.addresses import API
from pullback_service.audit.keeping import note
from pullback_service.database import ReadSession, WriteSession
from pullback_service.errors import ConflictError, InvalidInputError, NotFoundError
from pullback_service.fields import Name
from pullback_service.paging import Page
from pullback_service.problems import documented
from pullback_service.projects import queries
from pullback_service.projects.schemas import ProjectChange, ProjectRequest, ProjectSummary

router = APIRouter(prefix=f"{API}/projects", tags=["projects"])


@router.get("")
async def list_projects(session: ReadSession) -> Page[ProjectSummary]:
    """All projects by name, on one page."""
    return Page(items=[ProjectSummary.model_validate(project) for project in await queries.list_projects(session)])


@router.post("", status_code=201, responses=documented(ConflictError, InvalidInputError))
async def create_project(wanted: ProjectRequest, response: Response, session: WriteSession) -> ProjectSummary:
    """Make a project before its first upload."""
    project = await queries.create_project(session, wanted.name, public_read=wanted.public_read)
    note(session, subject=f"project {wanted.name}", project=wanted.name, **wanted.model_dump(exclude={"name"}))
    response.headers["Location"] = f"{API}/projects/{quote(wanted.name)}"
    return ProjectSummary.model_validate(project)


@router.get("/{name:path}", responses=documented(NotFoundError, InvalidInputError))
async def read_project(session: ReadSession, name: Name) -> ProjectSummary:
    """A project."""
    return ProjectSummary.model_validate(await queries.project_by_name(session, name))


@router.patch("/{name:path}", responses=documented(NotFoundError, InvalidInputError))
async def change_project(change: ProjectChange, session: WriteSession, name: Name) -> ProjectSummary:
    """Change what is said, leave the rest."""
    project, changed = await queries.change_project(session, name, change)
    note(session, subject=f"project {name}", project=name, **changed)
    return ProjectSummary.model_validate(project)
