"""Series and points as plain values, as `schemas.py` declares them.

A page holds up to a thousand points: making and checking a model for each took more time than reading them.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from pullback_service.readings.reading import Reading
from pullback_service.series.finding import StoredSeries
from pullback_service.series.windows import PooledPoint, RawPoint


def plain_point(point: PooledPoint) -> dict[str, Any]:
    """A `PointSummary`."""
    reading, commit, title, position, after_gap, reports, raw = point
    return {
        "commit": commit,
        "title": title,
        "ordered_at": reading.ordered_at,
        "position": position,
        "after_gap": after_gap,
        **plain_reading(reading),
        "report_ids": reports,
        "raw": [*map(RawPoint._asdict, raw)] or None,
    }


def plain_reading(reading: Reading) -> dict[str, Any]:
    """The fields that points and cells of the matrix share."""
    return {
        "value": reading.value,
        "spread": reading.spread,
        "baseline": reading.baseline,
        "log_ratio": reading.log_ratio,
        "low": reading.low,
        "high": reading.high,
        "n": reading.n,
        "outcome": reading.outcome,
        "quality": reading.quality,
        "dirty": reading.dirty,
        "method": reading.method,
        "program_hash": reading.program_hash,
    }


def plain_series(stored: StoredSeries) -> dict[str, Any]:
    """A `SeriesSummary`."""
    series = stored.series
    return {
        "id": series.id,
        "project": stored.project,
        "case": plain_case(stored.case),
        "variant": series.variant,
        "kind": series.variant_kind,
        "metric": series.metric,
        "unit": series.unit,
        "direction": series.direction,
        "exact": series.exact,
        "machine": stored.machine.name,
        "machine_fingerprint": stored.machine.fingerprint,
    }


class ToldCase(Protocol):
    """What is told of a case, wherever it was read."""

    @property
    def label(self) -> str:
        """What people call it."""

    @property
    def workload(self) -> str:
        """Of which workload it is."""

    @property
    def params(self) -> Mapping[str, Any]:
        """Its parameters."""

    @property
    def dtype(self) -> str | None:
        """The type of its numbers."""

    @property
    def device(self) -> str | None:
        """Where it runs."""


def plain_case(case: ToldCase) -> dict[str, Any]:
    """A `CaseSummary`."""
    return {
        "label": case.label,
        "workload": case.workload,
        "params": case.params,
        "dtype": case.dtype,
        "device": case.device,
    }
