"""Readings as lines of COPY. Pure."""

from datetime import datetime
from typing import Final
from uuid import UUID

from pullback_service.copy_text import NULL, number, text
from pullback_service.readings.pooling import Pooled, Spread

COPY_READINGS: Final = (
    "COPY reading (series_id, commit_id, ordered_at, report_id, reports, quality, dirty, value, process_count, process_low, "
    "process_q25, process_q75, process_high, baseline, log_ratio, low, high, n, outcome, consistent, method, program_hash) "
    "FROM STDIN"
)
_NO_SPREAD = b"\t".join([NULL] * 5)


def ending_of(pooled: Pooled) -> bytes:
    """The columns of a reading from its value on: what is known of it before it has a place."""
    return b"%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b" % (
        number(pooled.value),
        _NO_SPREAD if pooled.spread is None else _spread(pooled.spread),
        text(pooled.baseline),
        number(pooled.log_ratio),
        number(pooled.low),
        number(pooled.high),
        number(pooled.n),
        text(pooled.outcome),
        b"t" if pooled.consistent else b"f",
        text(pooled.method),
        text(pooled.program_hash),
    )


def _spread(spread: Spread) -> bytes:
    return b"\t".join(map(number, (spread.n, spread.low, spread.q25, spread.q75, spread.high)))


def beginning_of(
    commit_id: int, ordered_at: datetime, report_id: UUID, reports: int, *, quality: str, dirty: bool
) -> bytes:
    """The columns between a reading's series and its value: those that all readings of one report share."""
    return b"%d\t%b\t%b\t%d\t%b\t%b" % (
        commit_id,
        ordered_at.isoformat().encode(),
        str(report_id).encode(),
        reports,
        text(quality),
        b"t" if dirty else b"f",
    )


def line(series_id: int, beginning: bytes, ending: bytes) -> bytes:
    """A whole line."""
    return b"%d\t%b\t%b\n" % (series_id, beginning, ending)
