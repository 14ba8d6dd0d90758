"""Reading the audit log."""

from fastapi import Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.audit import queries
from pullback_service.audit.schemas import AuditLine
from pullback_service.endpoints.tables import AUDIT
from pullback_service.fields import Name
from pullback_service.listing import LISTED, KnownListing
from pullback_service.paging import Page, id_in, page_of
from pullback_service.routers import api_router

router = api_router(prefix=f"{API}/audit", tags=["operation"])


@router.get("", response_model=Page[AuditLine], responses=LISTED)
async def list_audit_lines(listing: KnownListing, project: Name | None = None) -> Response:
    """List writes, newest first, with their callers."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[AuditLine]:
        rows = await queries.list_lines(session, project=project, before_id=id_in(cursor), limit=limit + 1)
        return page_of(rows, limit, item=AuditLine.model_validate, key=lambda row: (row.id,))

    return await listing.give(read, AUDIT, name=project)
