"""Listing projects."""

from fastapi import APIRouter

from pullback_service.addresses import API
from pullback_service.database import ReadSession
from pullback_service.paging import Page
from pullback_service.projects import queries
from pullback_service.projects.schemas import ProjectSummary

router = APIRouter(prefix=f"{API}/projects", tags=["projects"])


@router.get("")
async def list_projects(session: ReadSession) -> Page[ProjectSummary]:
    """All projects by name, on one page."""
    return Page(items=[ProjectSummary.model_validate(project) for project in await queries.list_projects(session)])
