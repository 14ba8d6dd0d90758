"""Reading the audit log."""

from fastapi import APIRouter
from pydantic import TypeAdapter

from pullback_service.addresses import API
from pullback_service.audit import queries
from pullback_service.audit.schemas import AuditLine
from pullback_service.database import ReadSession
from pullback_service.errors import InvalidInputError
from pullback_service.fields import KnownId, Name
from pullback_service.paging import Cursor, Limit, Page, page_of, read_cursor
from pullback_service.problems import documented

router = APIRouter(prefix=f"{API}/audit", tags=["operation"])

Place = TypeAdapter(tuple[KnownId])


@router.get("", responses=documented(InvalidInputError))
async def list_audit_lines(
    session: ReadSession, project: Name | None = None, limit: Limit = 100, cursor: Cursor = None
) -> Page[AuditLine]:
    """Who wrote what, newest first."""
    place = read_cursor(cursor, Place)
    rows = await queries.list_lines(session, project=project, before_id=place[0] if place else None, limit=limit + 1)
    return page_of(rows, limit, item=AuditLine.model_validate, key=lambda row: (row.id,))
