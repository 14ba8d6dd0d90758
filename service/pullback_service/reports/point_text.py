"""Points as lines of text. Pure.

What needs no ids of the database is written beforehand, outside the event loop: most of a line.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import orjson

from pullback_service.ids import CommitId, SeriesId
from pullback_service.readings.reading_text import ending_of
from pullback_service.readings.report_pooling import MeasuredPoint, pool
from pullback_service.reports.case_rows import PointPart
from pullback_service.reports.ratios import PairedRatio
from pullback_service.row_text import NULL, insert_of, number, numbers, text

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
INSERT_POINTS: Final = insert_of("point", COLUMNS)

_NOT_PAIRED = b"\t".join([NULL] * 6)
_ARRAYS = bytes.maketrans(b"[]", b"{}")


def endings_of(point: PointPart) -> tuple[bytes, bytes]:
    """The columns of a point that are the report's own, and those of the reading where no other report measured the same."""
    return _ending(point), ending_of(pool([_measured(point)]))


def _measured(point: PointPart) -> MeasuredPoint:
    """A point without what the report says of all of them, its quality and whether its commit is dirty."""
    low, high = point.calls or (None, None)
    measured = MeasuredPoint(
        point.value,
        point.process_values,
        process_low=low,
        process_high=high,
        method=point.method,
        program_hash=point.program_hash,
    )
    return measured if point.paired is None else measured._replace(**point.paired._asdict())


def _ending(point: PointPart) -> bytes:
    return b"%b\t%b\t%b\t%b\t%b\t%b" % (
        number(point.value),
        NULL if point.process_values is None else orjson.dumps(point.process_values).translate(_ARRAYS),
        numbers(point.calls or (None, None)),
        _NOT_PAIRED if point.paired is None else _paired(point.paired),
        text(point.method),
        text(point.program_hash),
    )


def _paired(paired: PairedRatio) -> bytes:
    return b"%b\t%b\t%b" % (
        text(paired.baseline),
        numbers(paired.ratio),
        text(paired.outcome),
    )


def lines(
    series: Sequence[SeriesId],
    measured: Sequence[int | None],
    endings: Sequence[bytes],
    *,
    commit: CommitId,
    report: UUID,
    ordered_at: datetime,
    quality: str,
) -> Iterator[bytes]:
    """The lines of one report."""
    middle = b"\t".join((number(commit), str(report).encode(), ordered_at.isoformat().encode(), text(quality)))
    columns = zip(series, map(number, measured), endings, strict=True)
    return (b"%d\t%b\t%b\t%b" % (id_, measured_id, middle, ending) for id_, measured_id, ending in columns)
