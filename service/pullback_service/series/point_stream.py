"""Points of many series, one series after the other."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.ids import SeriesId
from pullback_service.series.filters import SeriesChoice
from pullback_service.series.search import StoredSeries, list_series
from pullback_service.series.windows import PooledPoint, Window, first_points, points_in

FEWEST_SERIES = 50
"""Series that are looked into at first: often the points of a page are those of a few, and each takes a row to be named."""

WalkPlace: TypeAlias = tuple[int, tuple[datetime, int] | None]
"""The series to go on with, and its last point that was read."""


async def points_of_series(
    session: AsyncSession,
    choice: SeriesChoice,
    window: Window,
    *,
    at: WalkPlace | None,
    limit: int,
    raw: bool = False,
    series: int | None = None,
) -> tuple[Sequence[tuple[StoredSeries, PooledPoint]], WalkPlace | None, int]:
    """Up to `limit` points of the chosen series, by series and then oldest commit first, where to go on, and with how many series.

    There may be fewer, even none, with more to come: not many more series than points are looked into, so that a page ends
    soon where hardly any has points in the window. Index: as `list_series`, then as `points_in` and `first_points`.
    """
    results: list[tuple[StoredSeries, PooledPoint]] = []
    series = series or FEWEST_SERIES
    while True:
        some, at = await _points_of_some(
            session, choice, window, at=at, series=series, limit=limit - len(results), raw=raw
        )
        results += some
        if at is None or len(results) == limit or series >= limit:
            return results, at, series
        series = min(4 * series, limit)


async def _points_of_some(
    session: AsyncSession,
    choice: SeriesChoice,
    window: Window,
    *,
    at: WalkPlace | None,
    series: int,
    limit: int,
    raw: bool,
) -> tuple[Sequence[tuple[StoredSeries, PooledPoint]], WalkPlace | None]:
    """The same of so many series, whose points take one statement together."""
    since, behind = (None, None) if at is None else at
    rows = await list_series(session, choice, since=since, limit=series + 1)
    stored = {SeriesId(row.series.id): row for row in rows[:series]}
    following: WalkPlace | None = (rows[series].series.id, None) if len(rows) > series else None
    points: list[PooledPoint] = []
    left = [*stored]
    if (
        at is not None and behind is not None and left[:1] == [at[0]]
    ):  # the choice may be another than that of the page before
        points += (await points_in(session, left.pop(0), window, after=behind, limit=limit, raw=raw))[0]
    if len(points) < limit and left:
        points += await first_points(session, left, window, limit=limit - len(points), raw=raw)
    if len(points) == limit:
        following = points[-1].reading.series_id, points[-1].reading.place
    return [(stored[SeriesId(point.reading.series_id)], point) for point in points], following
