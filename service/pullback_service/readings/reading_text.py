"""Readings as lines of text. Pure."""

from datetime import datetime
from functools import lru_cache
from typing import Final
from uuid import UUID

from pullback_service.readings.report_pooling import PooledPoints
from pullback_service.row_text import insert_of, number, numbers, text

INSERT_READINGS: Final = insert_of(
    "reading",
    {
        "series_id": "bigint",
        "measured_id": "int",
        "commit_id": "bigint",
        "ordered_at": "timestamptz",
        "report_id": "uuid",
        "reports": "bigint",
        "quality": "text",
        "dirty": "boolean",
        "value": "float8",
        "process_count": "bigint",
        "process_low": "float8",
        "process_q25": "float8",
        "process_q75": "float8",
        "process_high": "float8",
        "baseline": "text",
        "log_ratio": "float8",
        "low": "float8",
        "high": "float8",
        "n": "bigint",
        "outcome": "text",
        "consistent": "boolean",
        "method": "text",
        "program_hash": "text",
    },
)


def ending_of(pooled: PooledPoints) -> bytes:
    """The columns of a reading from its value on: what is known of it before it has a place."""
    return b"%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b" % (
        number(pooled.value),
        numbers(pooled[3:8]),
        text(pooled.baseline),
        numbers(pooled.ratio),
        text(pooled.outcome),
        b"t" if pooled.consistent else b"f",
        text(pooled.method),
        text(pooled.program_hash),
    )


@lru_cache(maxsize=64)  # thousands of readings of a report share it
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


def line(series_id: int, measured_id: int | None, beginning: bytes, ending: bytes) -> bytes:
    """A whole line."""
    return b"%d\t%b\t%b\t%b" % (series_id, number(measured_id), beginning, ending)
