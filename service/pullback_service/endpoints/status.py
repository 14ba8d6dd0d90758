"""The service's word on itself."""

from fastapi import APIRouter

from pullback_service.sessions import ReadSession
from pullback_service.status.queries import read_status
from pullback_service.status.schemas import Status

router = APIRouter(tags=["operation"])


@router.get("/status")
async def report_status(session: ReadSession) -> Status:
    """What waits, runs and failed: chores, jobs, leases; and in sentences what wants attention and what to do."""
    return await read_status(session)
