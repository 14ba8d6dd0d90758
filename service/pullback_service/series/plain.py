"""Series and points as plain values, as `schemas.py` declares them.

A page holds up to a thousand points: making and checking a model for each took more time than reading them.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from pullback_service.series.finding import StoredSeries
from pullback_service.series.windows import PooledPoint, RawPoint


def plain_point(point: PooledPoint) -> dict[str, Any]:
    """A `PointSummary`. Taken apart at once: reading one field after the other takes half as long again."""
    ((ordered_at, _), commit, title, position, after_gap, value, spread, baseline, log_ratio, low, high, n, outcome,
     quality, dirty, method, program_hash, reports, raw) = point  # fmt: skip
    return {
        "commit": commit,
        "title": title,
        "ordered_at": ordered_at,
        "position": position,
        "after_gap": after_gap,
        "value": value,
        "spread": spread,
        "baseline": baseline,
        "log_ratio": log_ratio,
        "low": low,
        "high": high,
        "n": n,
        "outcome": outcome,
        "quality": quality,
        "dirty": dirty,
        "method": method,
        "program_hash": program_hash,
        "report_ids": reports,
        "raw": [*map(RawPoint._asdict, raw)] or None,
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
