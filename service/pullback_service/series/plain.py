"""Series and points as plain values, as `schemas.py` declares them.

A page holds up to a thousand points: making and checking a model for each took more time than reading them.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from pullback_service.series.finding import StoredSeries
from pullback_service.series.windows import PooledPoint, RawPoint


def plain_point(point: PooledPoint) -> dict[str, Any]:
    """A `PointSummary`."""
    return {
        "commit": point.commit,
        "title": point.title,
        "ordered_at": point.place[0],
        "position": point.position,
        "after_gap": point.after_gap,
        "value": point.value,
        "spread": point.spread,
        "baseline": point.baseline,
        "log_ratio": point.log_ratio,
        "low": point.low,
        "high": point.high,
        "n": point.n,
        "outcome": point.outcome,
        "quality": point.quality,
        "dirty": point.dirty,
        "method": point.method,
        "program_hash": point.program_hash,
        "report_ids": point.reports,
        "raw": [*map(RawPoint._asdict, point.raw)] or None,
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
