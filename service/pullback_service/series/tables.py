"""Series and points as tables to export."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from typing import TypeVar

from pullback_service.exports.tables import Column, Table, written
from pullback_service.ratio import Ratio
from pullback_service.readings.reading import Reading
from pullback_service.series.search import Facets, StoredSeries
from pullback_service.series.windows import PooledPoint, RawPoint

Row = TypeVar("Row")


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


def ratio_columns(of: Callable[[Row], Ratio]) -> Sequence[Column[Row]]:
    """The columns of a row's ratio."""
    return [
        Column("log_ratio", "number", lambda row: of(row).log_ratio),
        Column("low", "number", lambda row: of(row).low),
        Column("high", "number", lambda row: of(row).high),
        Column("factor", "number", lambda row: _factor(of(row).log_ratio)),
        Column("n", "integer", lambda row: of(row).n),
    ]


def _factor(log_ratio: float | None) -> float | None:
    return None if log_ratio is None else exp(log_ratio)


def series_columns(of: Callable[[Row], StoredSeries]) -> Sequence[Column[Row]]:
    """The columns that describe a row's series."""
    return [
        Column("series_id", "integer", lambda row: of(row).series.id),
        Column("project", "text", lambda row: of(row).project),
        Column("workload", "text", lambda row: of(row).case.workload),
        Column("case", "text", lambda row: of(row).case.label),
        Column("params", "text", lambda row: written(of(row).case.params)),
        Column("dtype", "text", lambda row: of(row).case.dtype),
        Column("device", "text", lambda row: of(row).case.device),
        Column("variant", "text", lambda row: of(row).series.variant),
        Column("kind", "text", lambda row: of(row).series.variant_kind),
        Column("metric", "text", lambda row: of(row).series.metric),
        Column("unit", "text", lambda row: of(row).series.unit),
        Column("direction", "text", lambda row: of(row).series.direction),
        Column("exact", "flag", lambda row: of(row).series.exact),
        Column("machine", "text", lambda row: of(row).machine.name),
        Column("machine_fingerprint", "text", lambda row: of(row).machine.fingerprint),
    ]


def _series(stored: StoredSeries) -> StoredSeries:
    return stored


def _of_point(row: ExportedPoint) -> StoredSeries:
    return row.series


def _ratio_of_point(row: ExportedPoint) -> Ratio:
    return row.numbers.ratio


SERIES: Table[StoredSeries] = Table(
    "series", [*series_columns(_series), Column("resolution", "number", lambda row: row.resolution)]
)

FACETS: Table[FacetRow] = Table(
    "facets",
    [
        Column("dimension", "text", lambda row: row.dimension),
        Column("value", "text", lambda row: row.value),
        Column("series", "integer", lambda row: row.series),
    ],
)

_COMMIT: Sequence[Column[ExportedPoint]] = [
    Column("commit", "text", lambda row: row.point.commit),
    Column("title", "text", lambda row: row.point.title),
    Column("ordered_at", "time", lambda row: row.point.reading.ordered_at),
    Column("position", "integer", lambda row: row.point.position),
]
_RATIO: Sequence[Column[ExportedPoint]] = [
    *ratio_columns(_ratio_of_point),
    Column("outcome", "text", lambda row: row.numbers.outcome),
    Column("quality", "text", lambda row: row.numbers.quality),
    Column("dirty", "flag", lambda row: row.numbers.dirty),
    Column("method", "text", lambda row: row.point.reading.method),
    Column("program_hash", "text", lambda row: row.point.reading.program_hash),
]
POINTS: Table[ExportedPoint] = Table(
    "points",
    [
        *series_columns(_of_point),
        *_COMMIT,
        Column("value", "number", lambda row: row.point.reading.value),
        Column("processes", "integer", lambda row: row.point.reading.process_count),
        Column("smallest", "number", lambda row: row.point.reading.process_low),
        Column("q25", "number", lambda row: row.point.reading.process_q25),
        Column("q75", "number", lambda row: row.point.reading.process_q75),
        Column("largest", "number", lambda row: row.point.reading.process_high),
        Column("baseline", "text", lambda row: row.point.reading.baseline),
        *_RATIO,
        Column("reports", "integer", lambda row: row.point.reading.reports),
        Column("workload_digest", "text", lambda row: row.point.measured.workload or None),
        Column("subject_digest", "text", lambda row: row.point.measured.subject or None),
        Column("harness", "text", lambda row: row.point.measured.harness or None),
    ],
)
"""One row for each series and commit, its reports pooled."""

RAW_POINTS: Table[ExportedPoint] = Table(
    "raw-points",
    [
        *series_columns(_of_point),
        *_COMMIT,
        Column("report_id", "text", lambda row: None if row.raw is None else str(row.raw.report_id)),
        Column("value", "number", lambda row: row.numbers.value),
        Column("process_values", "numbers", lambda row: None if row.raw is None else row.raw.process_values),
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
