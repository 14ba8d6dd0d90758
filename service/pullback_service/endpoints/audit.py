"""Reading the audit log."""

from fastapi import Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.audit import queries
from pullback_service.audit.schemas import AuditLine
from pullback_service.endpoints.tables import AUDIT
from pullback_service.fields import KnownId, Name
from pullback_service.listing import LISTED, KnownListing
from pullback_service.paging import Page, page_of, read_cursor
from pullback_service.routers import api_router

router = api_router(prefix=f"{API}/audit", tags=["operation"])

Place = TypeAdapter(tuple[KnownId])


@router.get("", response_model=Page[AuditLine], responses=LISTED)
async def list_audit_lines(asked: KnownListing, project: Name | None = None) -> Response:
    """List writes, newest first, with their callers."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[AuditLine]:
        place = read_cursor(cursor, Place)
        rows = await queries.list_lines(
            session, project=project, before_id=place[0] if place else None, limit=limit + 1
        )
        return page_of(rows, limit, item=AuditLine.model_validate, key=lambda row: (row.id,))

    return await asked.give(read, AUDIT, name=project)
