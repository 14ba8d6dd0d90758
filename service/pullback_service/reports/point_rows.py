"""Points as rows. Pure.

What needs no ids of the database is computed beforehand, outside the event loop: most of a row.
"""

from array import array
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

from pullback_service.ids import CommitId, SeriesId
from pullback_service.ratio import NO_RATIO
from pullback_service.readings.reading_rows import ReadingEnding, ending_of
from pullback_service.readings.report_pooling import MeasuredPoint, pool
from pullback_service.reports.case_rows import PointPart
from pullback_service.row_arrays import insertion

COLUMNS: Final = {
    "series_id": "bigint",
    "measured_id": "int",
    "commit_id": "bigint",
    "report_id": "uuid",
    "ordered_at": "timestamptz",
    "quality": "text",
    "value": "float8",
    "process_values": "float8[]",
    "process_low": "float8",
    "process_high": "float8",
    "baseline": "text",
    "log_ratio": "float8",
    "low": "float8",
    "high": "float8",
    "n": "bigint",
    "outcome": "text",
    "method": "text",
    "program_hash": "text",
}
INSERT_POINTS: Final = insertion("point", COLUMNS)

PointEnding: TypeAlias = tuple[Any, ...]
"""The columns of a point from its value on: those that are the report's own."""
_NO_CALLS: Final = (None, None)
_NO_RATIO: Final = (None, NO_RATIO, None)


def endings_of(point: PointPart) -> tuple[PointEnding, ReadingEnding]:
    """The columns of a point that are the report's own, and those of the reading where no other report measured the same."""
    return _ending(point), ending_of(pool([_measured(point)]))


def _measured(point: PointPart) -> MeasuredPoint:
    """A point without what the report says of all of them, its quality and whether its commit is dirty."""
    low, high = point.calls or _NO_CALLS
    baseline, ratio, outcome = point.paired or _NO_RATIO
    return MeasuredPoint(
        point.value,
        point.process_values,
        process_low=low,
        process_high=high,
        baseline=baseline,
        ratio=ratio,
        outcome=outcome,
        method=point.method,
        program_hash=point.program_hash,
    )


def _ending(point: PointPart) -> PointEnding:
    baseline, ratio, outcome = point.paired or _NO_RATIO
    return (
        point.value,
        None if point.process_values is None else array("d", point.process_values).tobytes(),
        *(point.calls or _NO_CALLS),
        baseline,
        *ratio,
        outcome,
        point.method,
        point.program_hash,
    )


def rows(
    series: Sequence[SeriesId],
    measured: Sequence[int | None],
    endings: Sequence[PointEnding],
    *,
    commit: CommitId,
    report: UUID,
    ordered_at: datetime,
    quality: str,
) -> Iterator[tuple[Any, ...]]:
    """The rows of one report."""
    middle = commit, str(report), ordered_at.isoformat(), quality
    columns = zip(series, measured, endings, strict=True)
    return ((id_, measured_id, *middle, *ending) for id_, measured_id, ending in columns)
