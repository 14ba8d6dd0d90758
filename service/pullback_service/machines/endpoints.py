"""Listing machines."""

from fastapi import APIRouter
from pydantic import TypeAdapter

from pullback_service.addresses import API
from pullback_service.database import ReadSession
from pullback_service.errors import InvalidInputError
from pullback_service.fields import KnownId
from pullback_service.machines import queries
from pullback_service.machines.schemas import MachineSummary
from pullback_service.paging import Cursor, Limit, Page, page_of, read_cursor
from pullback_service.problems import documented

router = APIRouter(prefix=f"{API}/machines", tags=["machines"])

Place = TypeAdapter(tuple[KnownId])


@router.get("", responses=documented(InvalidInputError))
async def list_machines(session: ReadSession, limit: Limit = 100, cursor: Cursor = None) -> Page[MachineSummary]:
    """Machines in the order in which they were first seen."""
    place = read_cursor(cursor, Place)
    rows = await queries.list_machines(session, after_id=place[0] if place else None, limit=limit + 1)
    return page_of(rows, limit, item=MachineSummary.model_validate, key=lambda row: (row.id,))
