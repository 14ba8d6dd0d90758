"""What the API takes and says about jobs."""

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.commits.schemas import CommitStatement, CommitSummary
from pullback_service.fields import Count, Flag, JsonObject, Name, Number, PlaceName, Text
from pullback_service.reports.schemas import ReportReceipt

JobState: TypeAlias = Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]
FailureKind: TypeAlias = Literal["infra", "build", "workload", "timeout", "cancelled"]

LONGEST_TIMEOUT_S = 7 * 24 * 3600


class JobRequest(BaseModel):
    """Work to be done. `requires` is matched with the labels of agents: each entry must be among them."""

    model_config = ConfigDict(extra="allow")

    project: PlaceName
    commit: CommitStatement
    suite: Name
    kind: Name = "run"
    priority: Annotated[int, Field(strict=True, ge=-1000, le=1000)] = 0
    requires: JsonObject = {}
    timeout_s: Annotated[Number, Field(gt=0, le=LONGEST_TIMEOUT_S)] = 3600


class AttemptSummary(BaseModel):
    """One agent's try at a job."""

    number: int
    state: JobState
    agent_id: int
    machine_id: int
    phase: str | None
    progress: dict[str, Any] | None
    log_bytes: int
    failure_kind: FailureKind | None
    failure_message: str | None
    leased_at: datetime
    heartbeat_at: datetime | None
    ended_at: datetime | None


class JobSummary(BaseModel):
    """A job."""

    id: int
    url: str
    project: str
    commit: CommitSummary
    suite: str
    kind: str
    state: JobState
    priority: int
    requires: dict[str, Any]
    timeout_s: float
    attempts: int
    max_attempts: int
    cancel_requested: bool
    failure_kind: FailureKind | None
    failure_message: str | None
    created_at: datetime
    finished_at: datetime | None


class JobDetail(JobSummary):
    """A job with its attempts and its accepted result."""

    history: list[AttemptSummary]
    report_id: UUID | None


class Progress(BaseModel):
    """How far an attempt is."""

    model_config = ConfigDict(extra="allow")

    done: Count = 0
    total: Count = 0
    message: Text = ""


class Heartbeat(BaseModel):
    """An agent is alive and at work."""

    model_config = ConfigDict(extra="allow")

    lease_token: UUID
    phase: Name | None = None
    progress: Progress | None = None


class HeartbeatAnswer(BaseModel):
    """`continue`; `cancel`: stop and say so by `fail`; `lost`: somebody else may have the job by now."""

    answer: Literal["continue", "cancel", "lost"]
    heartbeat_s: float


class LogReceipt(BaseModel):
    """How long the stored log is."""

    size: int


class FailureStatement(BaseModel):
    """Why an attempt ended without a result."""

    model_config = ConfigDict(extra="allow")

    lease_token: UUID
    kind: FailureKind
    message: Text = ""
    retryable: Flag = False


class FailureAnswer(BaseModel):
    """What became of the job; `lost` when the lease was gone before."""

    answer: Literal["failed", "cancelled", "queued", "lost"]
    job_state: JobState


class JobReceipt(ReportReceipt):
    """What became of the result of a job."""

    job_state: JobState
