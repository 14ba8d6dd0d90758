"""Points as lines of COPY's text format, which takes 10,000 of them in a small part of the time that inserting takes.

What needs no ids of the database is written beforehand, outside the event loop: most of a line. Pure.
https://www.postgresql.org/docs/current/sql-copy.html, "Text Format".
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import islice
from uuid import UUID

import orjson

from pullback_service.ids import CommitId, SeriesId
from pullback_service.reports.parts import PointPart
from pullback_service.reports.ratios import Ratio

COPY_POINTS = (
    "COPY point (series_id, commit_id, report_id, ordered_at, quality, value, process_values, baseline, log_ratio, "
    "low, high, n, outcome, method, program_hash) FROM STDIN"
)

NULL = b"\\N"
LINES_AT_ONCE = 500  # about 200 KiB: the event loop serves others between two pieces

_NO_RATIO = b"\t".join([NULL] * 6)
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_ARRAYS = bytes.maketrans(b"[]", b"{}")


def ending_of(point: PointPart) -> bytes:
    """The columns of a point that are the report's own."""
    return b"%b\t%b\t%b\t%b\t%b" % (
        # Shortest decimals that read back to the same bits, as Postgres has them too.
        orjson.dumps(point.value),
        NULL if point.process_values is None else orjson.dumps(point.process_values).translate(_ARRAYS),
        _NO_RATIO if point.ratio is None else _ratio(point.ratio),
        _text(point.method),
        _text(point.program_hash),
    )


def _ratio(ratio: Ratio) -> bytes:
    return b"%b\t%b\t%b\t%b\t%b\t%b" % (
        _text(ratio.baseline),
        _number(ratio.log_ratio),
        _number(ratio.low),
        _number(ratio.high),
        _number(ratio.n),
        _text(ratio.outcome),
    )


def lines(
    series: Sequence[SeriesId],
    endings: Sequence[bytes],
    *,
    commit: CommitId,
    report: UUID,
    ordered_at: datetime,
    quality: str,
) -> Iterator[bytes]:
    """The lines of one report."""
    middle = b"\t".join((_number(commit), str(report).encode(), ordered_at.isoformat().encode(), _text(quality)))
    return (b"%d\t%b\t%b\n" % (id_, middle, ending) for id_, ending in zip(series, endings, strict=True))


def in_pieces(written: Iterator[bytes]) -> Iterator[bytes]:
    """Lines, `LINES_AT_ONCE` in a piece."""
    while piece := b"".join(islice(written, LINES_AT_ONCE)):
        yield piece


def _number(value: float | None) -> bytes:
    return NULL if value is None else orjson.dumps(value)


@lru_cache(maxsize=1024)  # few words, said of every point
def _text(value: str | None) -> bytes:
    return NULL if value is None else value.translate(_ESCAPES).encode()
