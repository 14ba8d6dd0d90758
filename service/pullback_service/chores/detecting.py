"""The seam for regression detection: what a report touched, one series after the other, as arrays.

A detector is called once for every series in which a report has points, after each upload and whenever a follow-up is
repeated, so it must find the same twice without doing anything twice. It gets the newest commits of the series in the
order of history, also those behind which a late report took its place; `touched` says where that is.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.ids import CommitId, ProjectId, SeriesId
from pullback_service.models.series import Point, Series
from pullback_service.readings.pooling import CLEAN
from pullback_service.readings.queries import newest_readings
from pullback_service.readings.reading import Reading

MOST_COMMITS = 1_000
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
    """The series of a report with their newest commits. Index: ix_point_report_id, pk_series, ix_reading_series_history."""
    rows = await session.execute(select(Point.series_id, Point.commit_id).where(Point.report_id == report_id))
    touched = {(series_id, commit_id) for series_id, commit_id in rows}
    ids = sorted({series_id for series_id, _ in touched})
    for start in range(0, len(ids), SERIES_AT_ONCE):
        some = ids[start : start + SERIES_AT_ONCE]
        readings = await newest_readings(session, some, last=MOST_COMMITS)
        series = {one.id: one for one in await session.scalars(select(Series).where(Series.id.in_(some)))}
        for series_id, group in groupby(readings, key=lambda reading: reading.series_id):
            yield _history(series[series_id], list(group), touched)


def _history(series: Series, readings: Sequence[Reading], touched: Collection[tuple[int, int]]) -> SeriesHistory:
    return SeriesHistory(
        series_id=SeriesId(series.id),
        project_id=ProjectId(series.project_id),
        metric=series.metric,
        unit=series.unit,
        direction=series.direction,
        exact=series.exact,
        commits=[CommitId(reading.commit_id) for reading in readings],
        ordered_at=[reading.ordered_at for reading in readings],
        values=[reading.value for reading in readings],
        log_ratios=[reading.log_ratio for reading in readings],
        low=[reading.low for reading in readings],
        high=[reading.high for reading in readings],
        clean=[reading.quality == CLEAN for reading in readings],
        touched=[place for place, reading in enumerate(readings) if reading[:2] in touched],
    )
