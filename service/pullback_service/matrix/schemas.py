"""What the API says about the newest state of a project."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.matrix.queries import MatrixRow, MatrixWorkload
from pullback_service.series.pooling import Spread
from pullback_service.series.queries import FailedCase, MeasuredCell
from pullback_service.series.schemas import CaseSummary


class MatrixCommit(BaseModel):
    """The commit of a row."""

    model_config = ConfigDict(from_attributes=True)

    sha: str = Field(examples=["c0ffee0000000000000000000000000000000001"])
    title: str | None
    author: str | None
    authored_at: datetime | None
    ordered_at: datetime


class MatrixCell(BaseModel):
    """What one variant gave for one metric, its reports pooled; the ratio is natural-log variant/baseline."""

    series_id: int
    variant: str = Field(examples=["native"])
    kind: str = Field(examples=["tier"])
    metric: str = Field(examples=["time"])
    unit: str = Field(examples=["s"])
    direction: Literal["smaller", "bigger"]
    exact: bool
    value: float
    spread: Spread | None
    baseline: str | None
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    outcome: str | None
    quality: str
    dirty: bool
    method: str | None
    program_hash: str | None
    report_ids: list[UUID]

    @classmethod
    def of(cls, cell: MeasuredCell) -> Self:
        """A measured cell."""
        return cls(
            series_id=cell.series_id,
            variant=cell.variant,
            kind=cell.variant_kind,
            metric=cell.metric,
            unit=cell.unit,
            direction="bigger" if cell.direction == "bigger" else "smaller",
            exact=cell.exact,
            value=cell.value,
            spread=cell.spread,
            baseline=cell.baseline,
            log_ratio=cell.log_ratio,
            low=cell.low,
            high=cell.high,
            n=cell.n,
            outcome=cell.outcome,
            quality=cell.quality,
            dirty=cell.dirty,
            method=cell.method,
            program_hash=cell.program_hash,
            report_ids=list(cell.report_ids),
        )


class MatrixFailure(BaseModel):
    """Why the case, or one variant of it, gave nothing at a commit."""

    variant: str | None
    kind: str
    message: str
    commit: str
    report_id: UUID

    @classmethod
    def of(cls, failed: FailedCase) -> Self:
        """A failed case."""
        return cls(
            variant=failed.variant,
            kind=failed.kind,
            message=failed.message,
            commit=failed.commit.sha,
            report_id=failed.report_id,
        )


class MatrixCase(BaseModel):
    """A case on a machine, at the newest commit that has measurements of it; null if none has.

    `failures` are those at that commit or since, newest first.
    """

    case: CaseSummary
    machine: str
    machine_fingerprint: str
    commit: MatrixCommit | None
    cells: list[MatrixCell]
    failures: list[MatrixFailure]

    @classmethod
    def of(cls, row: MatrixRow) -> Self:
        """A row."""
        return cls(
            case=CaseSummary.model_validate(row.case),
            machine=row.machine.name,
            machine_fingerprint=row.machine.fingerprint,
            commit=None if row.commit is None else MatrixCommit.model_validate(row.commit),
            cells=[MatrixCell.of(cell) for cell in row.cells],
            failures=[MatrixFailure.of(failed) for failed in row.failures],
        )


class WorkloadSummary(BaseModel):
    """A workload and its cases."""

    workload: str = Field(examples=["dense_bias_act"])
    cases: list[MatrixCase]

    @classmethod
    def of(cls, workload: MatrixWorkload) -> Self:
        """A workload with its rows."""
        return cls(workload=workload.workload, cases=[MatrixCase.of(row) for row in workload.rows])
