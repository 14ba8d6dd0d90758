"""Listing commits."""

from datetime import datetime

from fastapi import APIRouter
from pydantic import TypeAdapter

from pullback_service.addresses import API
from pullback_service.commits import queries
from pullback_service.commits.schemas import CommitSummary
from pullback_service.database import ReadSession
from pullback_service.errors import InvalidInputError, NotFoundError
from pullback_service.fields import KnownId, Name
from pullback_service.ids import ProjectId
from pullback_service.paging import Cursor, Limit, Page, page_of, read_cursor
from pullback_service.problems import documented
from pullback_service.projects.queries import project_by_name

router = APIRouter(prefix=f"{API}/commits", tags=["commits"])

Place = TypeAdapter(tuple[datetime, KnownId])


@router.get("", responses=documented(NotFoundError, InvalidInputError))
async def list_commits(
    session: ReadSession, project: Name, branch: Name | None = None, limit: Limit = 100, cursor: Cursor = None
) -> Page[CommitSummary]:
    """Commits of a project, newest in history first."""
    project_id = ProjectId((await project_by_name(session, project)).id)
    rows = await queries.list_commits(
        session, project_id, branch=branch, before=read_cursor(cursor, Place), limit=limit + 1
    )
    parents = await queries.parents_of(session, [commit.id for commit in rows])

    return page_of(
        rows,
        limit,
        item=lambda commit: CommitSummary.of(commit, parents.get(commit.id, [])),
        key=lambda commit: (commit.ordered_at, commit.id),
    )
