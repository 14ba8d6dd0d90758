"""The report, format `pullback-report` version 1, and the answers of the API about reports.

History of the format: 1, the first. Keys that are not known here are kept: the body is stored as it came.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeAlias
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from pullback_service.fields import (
    LINE,
    MOST_CASES,
    MOST_METRICS,
    MOST_PROCESSES,
    CaseParams,
    Count,
    Flag,
    JsonObject,
    LogRatio,
    MeasuredList,
    MeasuredNumber,
    Name,
    Number,
    PlaceName,
    RunSeconds,
    Sha,
    Text,
    Time,
)
from pullback_service.name_characters import SentName
from pullback_service.projects.project_names import ProjectName
from pullback_service.quality import quality_of
from pullback_service.ratio import Ratio
from pullback_service.ratio_fields import RatioEntry

FORMAT = "pullback-report"
VERSION = 1
MOST_VARIANTS = 64
MOST_PARENTS = 64

Outcome: TypeAlias = Literal["faster", "slower", "same", "ambiguous", "less", "more", "equal", "failed"]
Quality = Annotated[Literal["clean", "busy", "contaminated"], AfterValidator(quality_of)]
Digest = Annotated[str, StringConstraints(min_length=8, max_length=128, pattern=r"^[0-9A-Za-z:+/=_-]+$")]
Unit = Annotated[str, StringConstraints(min_length=1, max_length=32, pattern=LINE)]


class _Document(BaseModel):
    """A part of the report: unknown keys are welcome, NaN and infinities are not."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False, frozen=True)


class CommitDocument(_Document):
    """The commit that was measured."""

    sha: Sha
    parents: list[Sha] = Field(default=[], max_length=MOST_PARENTS)
    branch: Name | None = None
    author: Text | None = None
    authored_at: Time | None = None
    title: Text | None = None
    dirty: Flag = False


class MachineDocument(_Document):
    """The machine it was measured on: the computer, and the class that equal computers share."""

    host: Name | None = None
    fingerprint: Name
    name: SentName
    facts: JsonObject = {}


class JobDocument(_Document):
    """The job the run was made for."""

    id: Any
    attempt: Any = None


class HarnessDocument(_Document):
    """The harness that measured."""

    version: Name
    suite: Name | None = None
    quality: Quality = "clean"
    preflight: JsonObject | None = None
    job: JobDocument | None = None
    refused: list[Text] = Field(default=[], max_length=MOST_CASES)
    """A sentence for each thing asked for that could not be had."""
    absent: list[Text] = Field(default=[], max_length=MOST_CASES)
    """A sentence for each variant of the suite that some cases do not have."""
    partial: Flag = False
    """It measured a part of the suite: some cases or variants that were named, or it was interrupted."""


class CaseDocument(_Document):
    """A workload at one size, dtype and device."""

    workload: PlaceName
    params: CaseParams = {}
    dtype: Name | None = None
    device: Name | None = None


class GradientDocument(_Document):
    """The check of the gradient, made before anything was timed."""

    ok: Flag
    max_rel_error: Number | None = Field(
        default=None, ge=0, description="Over the larger of an element and the root mean square."
    )
    oracle: Text | None = None

    @model_validator(mode="after")
    def _right_is_not_far_off(self) -> Self:
        if self.ok and self.max_rel_error is not None and self.max_rel_error >= 1:
            raise PydanticCustomError(
                "gradient",
                "A gradient with a relative error of 1 or more is not `ok`: give `ok: false`, or divide the error of an "
                "element by the larger of that element and the root mean square of all.",
            )
        return self


class ErrorDocument(_Document):
    """The reason why there is no measurement."""

    kind: Name
    message: Text


class MetricDocument(_Document):
    """One metric of one variant: a value per process, or one count. Neither means that it could not be seen.

    `range` is the least and the most that a call counted, where calls differ.
    """

    unit: Unit
    value: MeasuredNumber | None = None
    processes: MeasuredList | None = Field(default=None, max_length=MOST_PROCESSES)
    slices: list[list[Number]] | None = Field(default=None, max_length=MOST_PROCESSES)
    clock: Name | None = None
    method: Text | None = None
    range: MeasuredList | None = Field(default=None, min_length=2, max_length=2)
    direction: Literal["smaller", "bigger"] = "smaller"
    kind: Literal["noisy", "exact"] | None = None

    @model_validator(mode="after")
    def _no_time_below_zero(self) -> Self:
        if self.unit in {"s", "B"} and min(self.value or 0, *(self.processes or (0,))) < 0:
            raise PydanticCustomError("negative", "A time or a size must not be below zero.")
        return self


class DigestsDocument(_Document):
    """Digests of what was measured, where known: the workload's text, the subject's files, the code that was made of them."""

    workload: Digest | None = None
    subject: Digest | None = None
    code: Digest | None = None


class VariantDocument(_Document):
    """One way of executing the case. `error` says that this variant alone gave nothing."""

    variant: Name
    kind: Literal["tier", "peer", "external"] = "external"
    metrics: dict[Name, MetricDocument] = Field(default={}, max_length=MOST_METRICS)
    program_hash: Name | None = None
    plan: JsonObject | None = None
    digests: DigestsDocument | None = None
    error: ErrorDocument | None = None


class RatioDocument(_Document, RatioEntry[LogRatio, Count]):
    """A natural-log ratio with its interval over `n` groups."""

    outcome: Outcome

    @property
    def ratio(self) -> Ratio:
        """The ratio as everything behind the upload has it."""
        return Ratio(self.log_ratio, self.low, self.high, self.n)


class PairedDocument(RatioDocument):
    """A variant against the baseline variant of the same case."""

    variant: Name
    baseline: Name
    metric: Name


class MeasuredCaseDocument(_Document):
    """Everything one case gave."""

    case: CaseDocument
    gradient: GradientDocument | None = None
    error: ErrorDocument | None = None
    variants: list[VariantDocument] = Field(default=[], max_length=MOST_VARIANTS)
    paired: list[PairedDocument] = Field(default=[], max_length=MOST_VARIANTS * MOST_METRICS)


class ComparisonDocument(RatioDocument):
    """The candidate commit against the reference commit.

    `claim` is the least ratio that would have been called faster or slower, `margin` the most that would have been
    called the same.
    """

    case: CaseDocument
    variant: Name
    metric: Name
    reference: Sha
    candidate: Sha
    log_ratios: list[LogRatio] | None = Field(default=None, max_length=MOST_PROCESSES)
    claim: LogRatio | None = None
    margin: LogRatio | None = None
    margin_is_provisional: Flag | None = None


class ReportHead(_Document):
    """The parts of a report beside its measurements."""

    format: Literal["pullback-report"]
    version: Literal[1]
    id: UUID
    started_at: Time
    duration_s: RunSeconds | None = None
    project: ProjectName
    commit: CommitDocument
    machine: MachineDocument
    harness: HarnessDocument


class ReportDocument(ReportHead):
    """One upload: a run of some cases at one commit on one machine."""

    cases: list[MeasuredCaseDocument] = Field(max_length=MOST_CASES)
    comparisons: list[ComparisonDocument] = Field(default=[], max_length=MOST_CASES)


class _Receipt(BaseModel):
    id: UUID
    project: str
    commit: str
    cases: int
    points: int
    failures: int
    format: str


class ReportReceipt(_Receipt):
    """The receipt of an upload; a replay of it gets the same answer.

    `status` is `late` when the report belongs to a lost lease and came while another attempt ran, or to a job that was done or
    cancelled, and `withdrawn` when it was taken back: it is kept all the same, on no history.
    """

    url: str
    status: Literal["accepted", "late", "withdrawn"]


class ReportSummary(ReportReceipt):
    """A report in a list."""

    machine: str
    suite: str | None
    quality: str
    dirty: bool
    job_id: int | None
    attempt: int | None
    body_bytes: int
    started_at: datetime
    duration_s: float | None
    received_at: datetime


class PointPreview(BaseModel):
    """A point that an upload would store."""

    case: str
    variant: str
    metric: str
    value: float
    unit: str
    direction: Literal["smaller", "bigger"]
    method: str | None


class UploadReceipt(_Receipt):
    """The answer to an upload.

    `branch` is what the upload or its file says. `notes` say what was left out of another tool's file and what looks
    doubtful about it. A dry run shows the first points that would have been stored; its `status` is `would be accepted`
    and its `url` null, for there is no report.
    """

    url: str | None
    status: Literal["accepted", "late", "withdrawn", "would be accepted"]
    branch: str | None = None
    notes: list[str] = []
    dry_run: bool = False
    preview: list[PointPreview] | None = None


class ReportDetail(ReportSummary):
    """A report with its document."""

    document: dict[str, Any]
