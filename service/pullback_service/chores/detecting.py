"""The seam for regression detection: what a report touched, one series after the other, as arrays.

A detector is called once for every series in which a report has points, after each upload and whenever a follow-up is
repeated, so it must find the same twice without doing anything twice. It gets the newest commits of the series in the
order of history, also those behind which a late report took its place; `touched` says where that is.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from sqlalchemy import select, true
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from pullback_service.commits import history
from pullback_service.ids import CommitId, ProjectId, SeriesId
from pullback_service.readings.pooling import pooled_value, speaker
from pullback_service.series.models import Point, Series

MOST_POINTS = 1_000
SERIES_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class SeriesHistory:
    """A series over commits, oldest first; all arrays are as long as `commits`.

    `values` are in `unit`, several reports at a commit pooled. `log_ratios` with `low` and `high` are against the baseline
    of the same groups, None where nothing was paired. `clean` is false where a commit was measured under noise only.
    """

    series_id: SeriesId
    project_id: ProjectId
    metric: str
    unit: str
    direction: str
    exact: bool
    commits: Sequence[CommitId]
    ordered_at: Sequence[datetime]
    values: Sequence[float]
    log_ratios: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]
    clean: Sequence[bool]
    touched: Sequence[int]
    """Places at which the report has points."""


Detector = Callable[[AsyncSession, SeriesHistory], Awaitable[None]]

DETECTORS: Sequence[Detector] = ()
"""Those that are called after an upload. None yet: comparisons speak by their paired intervals, exact metrics by equality."""


async def detect_after(session: AsyncSession, report_id: UUID, detectors: Sequence[Detector] = DETECTORS) -> None:
    """Show every detector every series that a report touched."""
    if not detectors:
        return  # arrays nobody looks at are not read
    async for touched in histories_touched_by(session, report_id):
        for detect in detectors:
            await detect(session, touched)


async def histories_touched_by(session: AsyncSession, report_id: UUID) -> AsyncIterator[SeriesHistory]:
    """The series of a report with their newest commits. Index: ix_point_report_id, ix_point_series_history."""
    ids = (
        await session.scalars(
            select(Point.series_id).where(Point.report_id == report_id).distinct().order_by(Point.series_id)
        )
    ).all()
    for start in range(0, len(ids), SERIES_AT_ONCE):
        newest = aliased(
            Point,
            select(Point)
            .where(Point.series_id == Series.id)
            .order_by(*history.newest_first(Point), Point.id.desc())
            .limit(MOST_POINTS)
            .lateral(),
        )
        rows = await session.execute(
            select(Series, newest)
            .join(newest, true())
            .where(Series.id.in_(ids[start : start + SERIES_AT_ONCE]))
            .order_by(Series.id, newest.ordered_at, newest.commit_id, newest.id)
        )
        for _, of_series in groupby(rows, key=lambda row: row[0].id):
            members = list(of_series)
            yield _history(members[0][0], [point for _, point in members], report_id)


def _history(series: Series, points: Sequence[Point], report_id: UUID) -> SeriesHistory:
    commits = [list(at_commit) for _, at_commit in groupby(points, key=lambda point: point.commit_id)]
    spoken = [speaker(at_commit) for at_commit in commits]
    return SeriesHistory(
        series_id=SeriesId(series.id),
        project_id=ProjectId(series.project_id),
        metric=series.metric,
        unit=series.unit,
        direction=series.direction,
        exact=series.exact,
        commits=[CommitId(point.commit_id) for point in spoken],
        ordered_at=[point.ordered_at for point in spoken],
        values=[pooled_value(at_commit) for at_commit in commits],
        log_ratios=[point.log_ratio for point in spoken],
        low=[point.low for point in spoken],
        high=[point.high for point in spoken],
        clean=[any(point.quality == "clean" for point in at_commit) for at_commit in commits],
        touched=[
            place for place, at_commit in enumerate(commits) if any(point.report_id == report_id for point in at_commit)
        ],
    )
