"""Open incidents at the head of the overview, and of each project in the list of all."""

from collections.abc import Callable, Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards.incidents.view import IncidentLine, line_of
from pullback_dashboards.overview.cache import TimedCache
from pullback_service import statements
from pullback_service.incidents.queries import Detail, details_asked
from pullback_service.models.incidents import Incident
from pullback_service.statements import QueryBatch

COUNTED = 100
"""The most open incidents that are counted."""

_KEPT: TimedCache[tuple[IncidentLine, ...]] = TimedCache(64)
"""Details of incidents kept between requests: which are open is read every time."""


class IncidentLines:
    """Incidents as lists show them: as kept, or as read along with other queries. Index: as `details_asked`."""

    def __init__(self, items: Sequence[Incident]) -> None:
        self._items = items
        self._key = tuple((i.id, i.kind, i.state, i.reference_id, i.commit_id, i.changed_at) for i in items)
        self._lines = _KEPT.kept(self._key) if items else ()
        self._details: Callable[[], Sequence[Detail]] | None = None

    def asked(self, ask: QueryBatch) -> None:
        """Ask for them, unless they are kept."""
        if self._lines is None:
            self._details = details_asked(ask, self._items)

    async def read(self, session: AsyncSession) -> tuple[IncidentLine, ...]:
        """The lines, after one statement more where nobody asked for them."""
        if self._lines is None:
            async with statements.together(session) as ask:
                details = self._details or details_asked(ask, self._items)
            self._lines = _KEPT.keep(self._key, tuple(map(line_of, details())))
        return self._lines
