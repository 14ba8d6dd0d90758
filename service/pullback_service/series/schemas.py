"""Answers about series and points."""

from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.measured_code.schemas import MeasuredSummary, plain_measured
from pullback_service.paging import Page
from pullback_service.ratio_fields import RatioFields, of_ratio
from pullback_service.readings.report_pooling import Spread
from pullback_service.rows_to_models import plain
from pullback_service.series.search import Facets


class CaseSummary(BaseModel):
    """A case, structured and as its label."""

    model_config = ConfigDict(from_attributes=True)

    label: str = Field(examples=["dense_bias_act[n=100,act=tanh,f4,cpu]"])
    workload: str = Field(examples=["dense_bias_act"])
    params: dict[str, Any] = Field(examples=[{"n": 100, "act": "tanh"}])
    dtype: str | None = Field(examples=["f4"])
    device: str | None = Field(examples=["cpu"])


plain_case = plain(CaseSummary)


class SeriesSummary(BaseModel):
    """A series: a metric of one variant of a case on one machine."""

    id: int = Field(examples=[42])
    project: str = Field(examples=["demo"])
    case: CaseSummary
    variant: str = Field(examples=["native"])
    kind: str = Field(examples=["tier"])
    metric: str = Field(examples=["time"])
    unit: str = Field(examples=["s"])
    direction: Literal["smaller", "bigger"]
    exact: bool
    machine: str = Field(examples=["box"])
    machine_fingerprint: str
    resolution: float | None = Field(
        None,
        description="The smallest step (natural log) that would be noticed within three commits: 0 of counts, null while "
        "there are too few results of the trunk, or none at its end.",
        examples=[0.012],
    )


plain_series = plain(
    SeriesSummary,
    **{name: f"series.{name}" for name in ("id", "variant", "metric", "unit", "direction", "exact")},
    case=lambda stored: plain_case(stored.case),
    kind="series.variant_kind",
    machine="machine.name",
    machine_fingerprint="machine.fingerprint",
)


class FacetValue(BaseModel):
    """One value of a dimension, and how many series choosing it would leave."""

    value: str = Field(examples=["native"])
    series: int = Field(examples=[12])


class FacetSummary(BaseModel):
    """A dimension: its values under the present choice, those of most series first.

    `values_in_all` says how many there are, of which the first 100 are listed. A parameter is the dimension
    `param.NAME`.
    """

    dimension: str = Field(examples=["variant", "param.n"])
    values: list[FacetValue]
    values_in_all: int


class FacetsSummary(BaseModel):
    """Counts of the series of a choice, and of the values that narrow it further.

    The counts of a dimension leave its own choice out: they say what choosing another of its values would give.
    """

    series: int = Field(examples=[12])
    facets: list[FacetSummary]

    @classmethod
    def of(cls, counted: Facets) -> Self:
        """The dimension that was counted."""
        return cls(
            series=counted.series,
            facets=[
                FacetSummary(
                    dimension=facet.dimension,
                    values=[FacetValue(value=value, series=count) for value, count in facet.values],
                    values_in_all=facet.values_in_all,
                )
                for facet in counted.facets
            ],
        )


class RawPointSummary(RatioFields):
    """The measurement of one report at a commit.

    `process_values` is null for exact metrics, and after the time for which the project keeps them.
    """

    model_config = ConfigDict(from_attributes=True)

    report_id: UUID
    value: float
    process_values: list[float] | None
    quality: str
    dirty: bool
    outcome: str | None


class PointSummary(RatioFields):
    """A series at a commit, all its reports pooled.

    `value` is in the unit of the series; `spread` is over processes and null for exact metrics. The ratio (natural log,
    variant/baseline) is null where nothing was paired. `position` and `after_gap` are of the branch that was asked for.
    """

    commit: str = Field(examples=["c0ffee0000000000000000000000000000000001"])
    title: str | None = Field(examples=["Fuse the bias into the product"])
    ordered_at: datetime
    position: int | None = Field(None, description="Place among the first parents of the requested branch.")
    after_gap: bool | None = Field(None, description="On that branch: the commit before it is not known.")
    value: float = Field(examples=[0.00125])
    spread: Spread | None
    baseline: str | None = Field(examples=["unfused"])
    outcome: str | None = Field(examples=["faster"])
    quality: str = Field(examples=["clean"])
    dirty: bool
    method: str | None = Field(examples=["cpu"])
    program_hash: str | None
    measured: MeasuredSummary
    report_ids: list[UUID] = Field(description="Reports behind the point, oldest first.")
    raw: list[RawPointSummary] | None = Field(None, description="The measurement of each report, with `raw=true`.")


OF_READING = {
    name: f"reading.{name}"
    for name in (*("value", "spread", "baseline", "outcome", "quality", "dirty", "method", "program_hash"),)
} | of_ratio("reading.ratio")
"""The places, in rows with a reading, of the fields that points, compared sides and cells of the matrix share."""
_raw_point = plain(RawPointSummary, **of_ratio("ratio"))
plain_point = plain(
    PointSummary,
    **OF_READING,
    ordered_at="reading.ordered_at",
    measured=lambda point: plain_measured(point.measured),
    report_ids="reports",
    raw=lambda point: [*map(_raw_point, point.raw)] or None,
)


class PointPage(Page[PointSummary]):
    """A page of points. `thinned_from` is how many there are in the window when only some are shown as marks."""

    thinned_from: int | None = Field(None, examples=[5000])


class SeriesPoint(BaseModel):
    """A point and the series it is of."""

    series: SeriesSummary
    point: PointSummary
