"""Answers about two commits."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.commits.ref_names import NamedCommit
from pullback_service.comparisons.judging import UNPAIRED, Evidence, Outcome
from pullback_service.comparisons.queries import SeriesDetail
from pullback_service.measured_code.schemas import MeasuredSummary, plain_measured
from pullback_service.models.machines import Machine
from pullback_service.paging import Page
from pullback_service.ratio_fields import IntervalFields, RatioFields, of_ratio
from pullback_service.readings.report_pooling import Spread
from pullback_service.rows_to_models import filled, plain
from pullback_service.series.schemas import OF_READING, CaseSummary, plain_case


class ComparedCommit(BaseModel):
    """One of the two commits. `branch` is the one that was named for it, `series` how many it has of those compared.

    Where two machines are compared with each other, `machine` is the one whose results these are.
    """

    sha: str = Field(examples=["c0ffee0000000000000000000000000000000001"])
    title: str | None
    author: str | None
    authored_at: datetime | None
    ordered_at: datetime
    branch: str | None = Field(examples=["main"])
    series: int = Field(examples=[120])
    machine: str | None
    machine_fingerprint: str | None

    @classmethod
    def of(cls, named: NamedCommit, machine: Machine | None, *, series: int) -> Self:
        """A commit as it was named."""
        return filled(
            cls,
            named,
            named.commit,
            series=series,
            machine=None if machine is None else machine.name,
            machine_fingerprint=None if machine is None else machine.fingerprint,
        )


class ComparedSide(IntervalFields):
    """A series at one of the commits, its reports pooled, with its ratio to the baseline (natural log) at that commit."""

    value: float = Field(examples=[0.00125])
    spread: Spread | None
    baseline: str | None
    quality: str
    dirty: bool
    program_hash: str | None
    measured: MeasuredSummary
    report_ids: list[UUID]


class ComparedSeries(RatioFields):
    """A series at two commits.

    `evidence` says how they were compared: `paired` in the same groups, as an upload states it; `exact` by counts; by the
    `ratios` of both to one baseline or by their `values`, measured at different times. Only the first two make a claim; the
    others are `likely_slower` or `likely_faster` at most. `kind` is the same with `unpaired` for the last two.
    The ratio is natural-log candidate/reference, null from or to zero; from `ratios` it is the change of the ratio to the
    baseline. `threshold` is the least ratio in size that could have been claimed, or called likely, `provisional` that it
    rests on a floor nobody has measured, and `significance` how many of those the ratio is. `reason` says why there is no claim.
    """

    case: CaseSummary
    variant: str = Field(examples=["native"])
    variant_kind: str | None = Field(examples=["tier"])
    metric: str = Field(examples=["time"])
    unit: str | None = Field(examples=["s"])
    direction: Literal["smaller", "bigger"]
    exact: bool
    machine: str = Field(examples=["box"])
    machine_fingerprint: str
    series_id: int | None
    outcome: Outcome
    evidence: Evidence | None
    kind: Literal["paired", "exact", "unpaired"] | None
    threshold: float | None = Field(examples=[0.0055])
    significance: float | None = Field(examples=[7.6])
    reason: str | None
    provisional: bool
    same_program: bool | None = Field(
        description="True if both ran the same program; then time differs by the machine."
    )
    equal_code: bool = Field(description="The measured files of both commits are equal: nothing is claimed.")
    reference: ComparedSide | None
    candidate: ComparedSide | None

    @classmethod
    def of(cls, detail: SeriesDetail) -> Self:
        """A compared series in full."""
        return cls.model_validate(plain_compared(detail))


def _significance(detail: SeriesDetail) -> float | None:
    ratio, threshold = detail.compared.judgement.ratio.log_ratio, detail.compared.judgement.threshold
    return abs(ratio) / threshold if ratio is not None and threshold else None


def _is_same_program(detail: SeriesDetail) -> bool | None:
    sides = (detail.compared.reference, detail.compared.candidate)
    hashes = [None if side is None else side.program_hash for side in sides]
    return None if None in hashes else hashes[0] == hashes[1]


def _kind(detail: SeriesDetail) -> str | None:
    evidence = detail.compared.judgement.evidence
    return "unpaired" if evidence in UNPAIRED else evidence


_side = plain(ComparedSide, **OF_READING, report_ids="reports", measured=lambda side: plain_measured(side.measured))
plain_compared = plain(
    ComparedSeries,
    **{name: f"compared.{name}" for name in ("unit", "exact", "series_id")},
    **{name: f"compared.judgement.{name}" for name in ("outcome", "evidence", "threshold", "reason", "provisional")},
    **of_ratio("compared.judgement.ratio"),
    case=lambda shown: plain_case(shown.case),
    variant=lambda shown: shown.compared.key[2],
    variant_kind="compared.kind",
    metric=lambda shown: shown.compared.key[3],
    direction=lambda shown: "bigger" if shown.compared.bigger_is_better else "smaller",
    machine="machine.name",
    machine_fingerprint="machine.fingerprint",
    kind=_kind,
    significance=_significance,
    same_program=_is_same_program,
    equal_code="compared.is_equal_code",
    reference=lambda shown: None if shown.reference is None else _side(shown.reference),
    candidate=lambda shown: None if shown.candidate is None else _side(shown.candidate),
)


class SpanSummary(BaseModel):
    """The extent of claims: the mean of their log ratios, whose factor is the geometric mean, the smallest and the largest.

    Changes from and to zero are counted and have no ratio.
    """

    model_config = ConfigDict(from_attributes=True)

    count: int
    mean: float | None
    smallest: float | None
    largest: float | None


class ComparedMetric(BaseModel):
    """One metric over all compared series. Metrics have no common mean: seconds and bytes do not add up."""

    model_config = ConfigDict(from_attributes=True)

    metric: str
    outcomes: dict[Outcome, int]
    worse: SpanSummary
    better: SpanSummary


class ComparisonSummary(BaseModel):
    """All series that were chosen, whichever page and outcomes are shown."""

    series: int
    worse: int = Field(description="Slower, more where smaller is better, less where bigger is, and failed.")
    likely_worse: int
    likely_better: int
    better: int
    unchanged: int
    ambiguous: int
    not_comparable: int
    failed: int
    metrics: list[ComparedMetric]


class ComparisonPage(Page[ComparedSeries]):
    """Two commits, or two machines, worst series first. `notes` say what an answer rests on that is not what was asked for word for word."""

    reference: ComparedCommit
    candidate: ComparedCommit
    summary: ComparisonSummary
    notes: list[str]
