"""Readings as rows. Pure."""

from datetime import datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

from pullback_service.readings.report_pooling import PooledPoints
from pullback_service.row_arrays import insertion

INSERT_READINGS: Final = insertion(
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


ReadingEnding: TypeAlias = tuple[Any, ...]
"""The columns of a reading from its value on: what is known of it before it has a place."""


def ending_of(pooled: PooledPoints) -> ReadingEnding:
    """The columns of a reading from its value on."""
    return (
        pooled.value,
        *pooled[3:8],
        pooled.baseline,
        *pooled.ratio,
        pooled.outcome,
        pooled.consistent,
        pooled.method,
        pooled.program_hash,
    )


def beginning_of(
    commit_id: int, ordered_at: datetime, report_id: UUID, reports: int, *, quality: str, dirty: bool
) -> tuple[Any, ...]:
    """The columns between a reading's series and its value: those that all readings of one report share."""
    return commit_id, ordered_at.isoformat(), str(report_id), reports, quality, dirty
