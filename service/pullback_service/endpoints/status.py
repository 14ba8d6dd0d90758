"""The state of the service."""

from pullback_service.routers import api_router
from pullback_service.sessions import ReadSession
from pullback_service.status.queries import read_status
from pullback_service.status.schemas import Status

router = api_router(tags=["operation"])


@router.get("/status")
async def report_status(session: ReadSession) -> Status:
    """Report the state of the service: chores, jobs, leases; and sentences about what needs attention, with remedies."""
    return await read_status(session)
