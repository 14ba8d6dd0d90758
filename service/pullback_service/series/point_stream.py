"""Points of many series, one series after the other."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.ids import SeriesId
from pullback_service.series.filters import SeriesChoice
from pullback_service.series.search import StoredSeries, list_series
from pullback_service.series.windows import PooledPoint, Window, points_in, those_with_points

SERIES_AT_ONCE = 50
"""A page looks into this many series at most, so that it ends soon where hardly any has points in the window."""

WalkPlace: TypeAlias = tuple[int, tuple[datetime, int] | None]
"""The series to go on with, and its last point that was read."""


async def points_of_series(
    session: AsyncSession, choice: SeriesChoice, window: Window, *, at: WalkPlace | None, limit: int, raw: bool = False
) -> tuple[Sequence[tuple[StoredSeries, PooledPoint]], WalkPlace | None]:
    """Up to `limit` points of the chosen series, by series and then oldest commit first, and where to go on.

    There may be fewer, even none, with more to come. Series without any point there take one statement together.
    Index: as `list_series`, then as `points_in` for each series with points.
    """
    rows = await list_series(session, choice, after_id=at[0] - 1 if at is not None else None, limit=SERIES_AT_ONCE + 1)
    found: list[tuple[StoredSeries, PooledPoint]] = []
    series = [SeriesId(stored.series.id) for stored in rows[:SERIES_AT_ONCE]]
    there: set[int] = {*series[:1]}
    for number, stored in enumerate(rows[:SERIES_AT_ONCE]):
        if number == 1:  # often the first has enough
            there |= await those_with_points(session, series[1:], window)
        if stored.series.id not in there:
            continue
        after = at[1] if at is not None and at[0] == stored.series.id else None
        points, more = await points_in(
            session, SeriesId(stored.series.id), window, after=after, limit=limit - len(found), raw=raw
        )
        found += [(stored, point) for point in points]
        if more and points:
            return found, (stored.series.id, points[-1].reading.place)
        if len(found) == limit:
            return found, (stored.series.id, points[-1].reading.place if points else after)
    return found, (rows[SERIES_AT_ONCE].series.id, None) if len(rows) > SERIES_AT_ONCE else None
