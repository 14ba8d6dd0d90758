"""Series and points as tables to export."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from pullback_service.exports.tables import Column, Table, columns_at
from pullback_service.readings.reading import Reading
from pullback_service.series.search import Facets, StoredSeries
from pullback_service.series.windows import PooledPoint, RawPoint


@dataclass(frozen=True, slots=True)
class ExportedPoint:
    """A point of a series, and one of its reports where each is a row of its own."""

    series: StoredSeries
    point: PooledPoint
    raw: RawPoint | None = None

    @property
    def numbers(self) -> Reading | RawPoint:
        """The source of the numbers."""
        return self.point.reading if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class FacetRow:
    """A value of a dimension, with the series it has."""

    dimension: str
    value: str
    series: int


def ratio_columns(place: str) -> Sequence[Column[Any]]:
    """The columns of a ratio at a place of rows."""
    *ratio, groups = columns_at(place, "log_ratio:number", "low:number", "high:number", "n:integer")
    return [*ratio, Column("factor", "number", lambda row: _factor(ratio[0].value(row))), groups]


def _factor(log_ratio: Any) -> float | None:
    return None if log_ratio is None else exp(log_ratio)


def _series_columns(place: str) -> Sequence[Column[Any]]:
    """The columns that describe a series at a place of rows."""
    return columns_at(
        place,
        "series_id:integer=series.id", "project", "workload=case.workload", "case=case.label", "params=case.params", "dtype=case.dtype",
        "device=case.device", "variant=series.variant", "kind=series.variant_kind", "metric=series.metric", "unit=series.unit",
        "direction=series.direction", "exact:flag=series.exact", "machine=machine.name", "machine_fingerprint=machine.fingerprint",
    )  # fmt: skip


SERIES: Table[StoredSeries] = Table("series", [*_series_columns(""), *columns_at("", "resolution:number")])

FACETS: Table[FacetRow] = Table("facets", columns_at("", "dimension", "value", "series:integer"))

_COMMIT: Sequence[Column[ExportedPoint]] = columns_at(
    "point.", "commit", "title", "ordered_at:time=reading.ordered_at", "position:integer"
)
_RATIO: Sequence[Column[ExportedPoint]] = [
    *ratio_columns("numbers.ratio."),
    *columns_at("numbers.", "outcome", "quality", "dirty:flag"),
    *columns_at("point.reading.", "method", "program_hash"),
]
POINTS: Table[ExportedPoint] = Table(
    "points",
    [
        *_series_columns("series."),
        *_COMMIT,
        *columns_at(
            "point.reading.",
            "value:number", "processes:integer=process_count", "smallest:number=process_low", "q25:number=process_q25",
            "q75:number=process_q75", "largest:number=process_high", "baseline",
        ),
        *_RATIO,
        *columns_at("point.reading.", "reports:integer"),
        Column("workload_digest", "text", lambda row: row.point.measured.workload or None),
        Column("subject_digest", "text", lambda row: row.point.measured.subject or None),
        Column("harness", "text", lambda row: row.point.measured.harness or None),
    ],
)  # fmt: skip
"""One row for each series and commit, its reports pooled."""

RAW_POINTS: Table[ExportedPoint] = Table(
    "raw-points",
    [
        *_series_columns("series."),
        *_COMMIT,
        *columns_at(
            "", "report_id=raw.report_id", "value:number=numbers.value", "process_values:numbers=raw.process_values"
        ),
        *_RATIO,
    ],
)
"""One row for each series, commit and report, with one value per process."""


def exported(series: StoredSeries, points: Sequence[PooledPoint], *, raw: bool) -> list[ExportedPoint]:
    """Rows of one series."""
    if not raw:
        return [ExportedPoint(series, point) for point in points]
    return [ExportedPoint(series, point, one) for point in points for one in point.raw]


def facet_rows(counted: Facets) -> list[FacetRow]:
    """Rows of counts."""
    return [FacetRow(facet.dimension, value, series) for facet in counted.facets for value, series in facet.values]
