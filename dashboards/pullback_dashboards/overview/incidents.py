"""Open incidents at the head of the overview, and of each project in the list of all."""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards.incidents.view import IncidentLine, line_of
from pullback_dashboards.overview.cache import TimedCache
from pullback_service.incidents.queries import details_of
from pullback_service.models.incidents import Incident

COUNTED = 100
"""The most open incidents that are counted."""

_KEPT: TimedCache[tuple[IncidentLine, ...]] = TimedCache(64)
"""Details of incidents kept between requests: which are open is read every time."""


async def lines_of(session: AsyncSession, items: Sequence[Incident]) -> tuple[IncidentLine, ...]:
    """Incidents as lists show them. Index: as `details_of`."""
    if not items:
        return ()
    key = tuple((each.id, each.kind, each.state, each.reference_id, each.commit_id, each.changed_at) for each in items)

    async def read() -> tuple[IncidentLine, ...]:
        return tuple(map(line_of, await details_of(session, items)))

    return await _KEPT.get(key, read)
