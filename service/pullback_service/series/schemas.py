"""What the API says about series and points."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from pullback_service.series.pooling import Spread


class CaseSummary(BaseModel):
    """A case, structured and as its label."""

    model_config = ConfigDict(from_attributes=True)

    label: str
    workload: str
    params: dict[str, Any]
    dtype: str | None
    device: str | None


class SeriesSummary(BaseModel):
    """A series: a metric of one variant of a case on one machine."""

    id: int
    project: str
    case: CaseSummary
    variant: str
    kind: str
    metric: str
    unit: str
    direction: Literal["smaller", "bigger"]
    exact: bool
    machine: str
    machine_fingerprint: str


class PointSummary(BaseModel):
    """A series at a commit, as one report measured it.

    `spread` and `process_values` are null for exact metrics, and `process_values` also after the time for which the
    project keeps them; the ratio (natural log, variant/baseline) is null where
    nothing was paired.
    """

    commit: str
    ordered_at: datetime
    report_id: UUID
    value: float
    spread: Spread | None
    process_values: list[float] | None
    baseline: str | None
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    outcome: str | None
    quality: str
    method: str | None
    program_hash: str | None
