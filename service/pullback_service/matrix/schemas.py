"""Answers about the newest state of a project."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from pullback_service.matrix.queries import MatrixWorkload
from pullback_service.ratio_fields import RatioFields
from pullback_service.readings.report_pooling import Spread
from pullback_service.rows_to_models import plain
from pullback_service.series.schemas import OF_READING, CaseSummary, plain_case


class MatrixCommit(BaseModel):
    """The commit of a row."""

    sha: str = Field(examples=["c0ffee0000000000000000000000000000000001"])
    title: str | None
    author: str | None
    authored_at: datetime | None
    ordered_at: datetime


class MatrixCell(RatioFields):
    """The newest result of one variant for one metric, its reports pooled; the ratio is natural-log variant/baseline."""

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
    outcome: str | None
    quality: str
    dirty: bool
    method: str | None
    program_hash: str | None
    report_ids: list[UUID]


class MatrixFailure(BaseModel):
    """The failure of a case, or of one of its variants, at a commit."""

    variant: str | None
    kind: str
    message: str
    commit: str
    report_id: UUID


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


class WorkloadSummary(BaseModel):
    """A workload and its cases."""

    workload: str = Field(examples=["dense_bias_act"])
    cases: list[MatrixCase]


_commit = plain(MatrixCommit)
_cell = plain(MatrixCell, **OF_READING, series_id="reading.series_id", kind="variant_kind")
_failure = plain(MatrixFailure, commit="commit.sha")
_row = plain(
    MatrixCase,
    case=lambda row: plain_case(row.case),
    machine="machine.name",
    machine_fingerprint="machine.fingerprint",
    commit=lambda row: None if row.commit is None else _commit(row.commit),
    cells=lambda row: [*map(_cell, row.cells)],
    failures=lambda row: [*map(_failure, row.failures)],
)


def plain_workload(workload: MatrixWorkload) -> dict[str, Any]:
    """A `WorkloadSummary`."""
    return {"workload": workload.workload, "cases": [*map(_row, workload.rows)]}
