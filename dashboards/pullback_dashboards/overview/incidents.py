"""Open incidents at the head of the overview."""

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards.incidents.view import IncidentLine, line_of
from pullback_dashboards.overview.keeping import Keeping
from pullback_service.ids import ProjectId
from pullback_service.incidents.queries import details_of, open_incidents

MOST = 5

_KEPT: Keeping[tuple[IncidentLine, ...]] = Keeping(16)
"""Details of incidents kept between requests: reading them takes seven statements; reading which are open takes one."""


async def open_lines(session: AsyncSession, project_id: ProjectId) -> tuple[IncidentLine, ...]:
    """The newest open incidents of a project, improvements apart. Index: as `open_incidents` and `details_of`."""
    found = await open_incidents(session, project_id, limit=MOST)
    if not found:
        return ()
    key = tuple((each.id, each.kind, each.state, each.reference_id, each.commit_id, each.changed_at) for each in found)

    async def read() -> tuple[IncidentLine, ...]:
        return tuple(map(line_of, await details_of(session, found)))

    return await _KEPT.get(key, read)
