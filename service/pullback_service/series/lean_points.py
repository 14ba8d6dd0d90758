"""What series of a case say at commits, all reports pooled: with the few columns that the page of a case shows of a point."""

from collections.abc import Collection, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, LiteralString, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.readings.pooling import counting, pooled_value, speaker
from pullback_service.series.one_of_each_commit import measured
from pullback_service.series.windows import Place
from pullback_service.statements import array_of


class LeanPoint(NamedTuple):
    """What a series says at a commit, all its reports pooled; the report is the newest clean one, which counted."""

    series_id: int
    commit_id: int
    value: float
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    outcome: str | None
    quality: str
    dirty: bool
    report_id: str


_POINT: LiteralString = """
SELECT point.series_id, point.commit_id, point.id, point.report_id::text, point.value, point.log_ratio, point.low,
       point.high, point.n, point.outcome, point.quality
"""
_IN_ORDER: LiteralString = " ORDER BY point.series_id, point.ordered_at, point.commit_id, point.id"
_POINTS_SINCE: LiteralString = f"""{_POINT}
  FROM point
 WHERE series_id = ANY (%(series)s) AND (ordered_at, commit_id) >= (%(ordered_at)s, %(commit)s)
{_IN_ORDER}"""
_POINTS_OF: LiteralString = f"""{_POINT}
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) chosen(series_id, commit_id)
  JOIN point USING (series_id, commit_id)
{_IN_ORDER}"""
_DIRTY: LiteralString = "SELECT id::text FROM report WHERE id = ANY (%(ids)s::uuid[]) AND dirty"


async def lean_points_since(session: AsyncSession, series_ids: Collection[int], place: Place) -> list[LeanPoint]:
    """Some series from a place on, series by series and then oldest first. Index: ix_point_series_history."""
    ordered_at, commit_id = place
    values = {"series": list(series_ids), "ordered_at": ordered_at, "commit": commit_id}
    return await _pooled(session, await statements.rows(session, _POINTS_SINCE, values, binary=True))


async def lean_points_of(session: AsyncSession, pairs: Collection[tuple[int, int]]) -> list[LeanPoint]:
    """Series at commits, series by series and then oldest first. Index: ix_point_commit_id_series_id."""
    values = {"series": array_of(pair[0] for pair in pairs), "commits": array_of(pair[1] for pair in pairs)}
    return await _pooled(session, await statements.rows(session, _POINTS_OF, values, binary=True))


async def _pooled(session: AsyncSession, rows: Sequence[tuple[Any, ...]]) -> list[LeanPoint]:
    """One point for each series and commit. What processes took is read only where several points are to be pooled."""
    reports = {"ids": array_of({row[3] for row in rows})}
    dirty = {row[0] for row in await statements.rows(session, _DIRTY, reports)} if rows else set()
    groups = [[*group] for _, group in groupby(rows, key=itemgetter(0, 1))]
    several = [row[2] for group in groups if len(group) > 1 for row in group]
    known = await measured(session, several) if several else {}
    found = []
    for group in groups:
        said = group[-1]
        value, report = said[4], said[3]
        is_dirty = report in dirty
        if len(group) > 1:
            points, by_id = [known[row[2]] for row in group], {row[2]: row for row in group}
            said, report = by_id[speaker(points).id], by_id[counting(points).id][3]
            value = pooled_value(points)
            is_dirty = any(row[3] in dirty for row in group)
        series_id, commit_id, *_, log_ratio, low, high, n, outcome, quality = said
        found.append(
            LeanPoint(series_id, commit_id, value, log_ratio, low, high, n, outcome, quality, is_dirty, report)
        )
    return found
