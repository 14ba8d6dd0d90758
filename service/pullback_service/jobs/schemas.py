"""Requests and answers about jobs."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeAlias
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from pullback_service.commits.schemas import CommitStatement, CommitSummary
from pullback_service.fields import AS_WHOLE, Count, Flag, KnownId, Labels, Name, Priority, Size, Text, Timeout
from pullback_service.projects.project_names import ProjectName
from pullback_service.reports.schemas import ReportReceipt

JobState: TypeAlias = Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]
FailureKind: TypeAlias = Literal["infra", "build", "workload", "timeout", "cancelled"]

JobKind: TypeAlias = Literal["run", "compare"]
JobOrigin: TypeAlias = Literal["asked", "backfill", "idle", "confirm", "bisect", "anchor"]
TrustLevel: TypeAlias = Literal["trusted", "untrusted"]


Effort = Annotated[
    int,
    Field(
        strict=True,
        ge=1,
        le=8,
        description="For the kind `compare`: multiple of the usual duration and number of groups.",
    ),
    AS_WHOLE,
]
NamesToMeasure = Annotated[list[Name], Field(max_length=64)]


class JobCommit(CommitStatement):
    """The commit to be measured."""

    fork: Name | None = Field(
        None,
        description="Repository that a pull request comes from, if it is not the project's own: its code is untrusted.",
        examples=["someone/gradients"],
    )


class JobRequest(BaseModel):
    """Work to be done. `requires` is matched with the labels of agents: each entry must be among them.

    `compare` measures the commit and `reference` taking turns; a commit against itself is A/A and shows the noise.
    """

    model_config = ConfigDict(extra="allow")

    project: ProjectName
    commit: JobCommit
    suite: Name = Field(examples=["standard", "quick:poly9*"])
    cases: NamesToMeasure = Field(
        default=[],
        description="Names of cases, or globs over them, that narrow the suite; none: all of it.",
        examples=[["poly9_broadcast[n=100,f4,cpu]", "lstm*"]],
    )
    variants: NamesToMeasure = Field(
        default=[], description="Variants to measure; none: those that the project measures.", examples=[["native"]]
    )
    kind: JobKind = "run"
    reference: CommitStatement | None = Field(None, description="Of the kind `compare`: the older of the two commits.")
    priority: Priority = 0
    requires: Labels = Field(
        default={}, description="A job that names no `device` is for the CPU.", examples=[{"device": "cpu"}]
    )
    timeout_s: Timeout = 3600
    effort: Effort = 1
    machine_id: KnownId | None = Field(None, description="The one machine that may take it.")

    @model_validator(mode="after")
    def _reference_where_needed(self) -> Self:
        if (self.kind == "compare") != (self.reference is not None):
            raise PydanticCustomError(
                "reference", "A job of the kind compare, and no other, has a reference: the commit to compare with."
            )
        return self


class JobChange(BaseModel):
    """Changes to a job."""

    model_config = ConfigDict(extra="forbid")

    priority: Priority


class SpoolStatement(BaseModel):
    """Results that an agent has measured and not yet delivered."""

    model_config = ConfigDict(extra="allow")

    waiting: Count = Field(description="Reports and failures the service has not taken yet.", examples=[0])
    bytes: Size = Field(description="Size of all of them together.", examples=[0])


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
    """A job. An untrusted one `awaits_approval` until an administrator approves it; no agent is given it before."""

    id: int
    url: str
    project: str
    commit: CommitSummary
    suite: str
    cases: list[str]
    variants: list[str]
    kind: str
    state: JobState
    priority: int
    requires: dict[str, Any]
    timeout_s: float
    effort: int
    attempts: int
    max_attempts: int
    cancel_requested: bool
    failure_kind: FailureKind | None
    failure_message: str | None
    created_at: datetime
    finished_at: datetime | None
    reference: str | None = Field(description="The commit it is compared with, in jobs of the kind `compare`.")
    machine_id: int | None = Field(description="The one machine that may take it.")
    origin: JobOrigin = Field(
        description="Origin: a person, a backfill, a machine that was idle, an incident that is confirmed or bisected, or the anchor of the project."
    )
    asked_by: str | None = Field(
        description="The requester, as the audit log names callers; null for jobs made by workers."
    )
    trust: TrustLevel
    awaits_approval: bool
    approved_at: datetime | None
    approved_by: str | None
    not_before: datetime | None = Field(
        None,
        description="The moment before which no agent is given it: while it pauses because an attempt failed, or waits for a day that has time for it.",
    )


class JobDetail(JobSummary):
    """A job with its attempts and its accepted result."""

    history: list[AttemptSummary]
    report_id: UUID | None


class Progress(BaseModel):
    """The progress of an attempt."""

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
    spool: SpoolStatement | None = None


class HeartbeatAnswer(BaseModel):
    """`continue`; `cancel`: stop and say so by `fail`; `lost`: somebody else may have the job by now."""

    answer: Literal["continue", "cancel", "lost"]
    heartbeat_s: float


class LogReceipt(BaseModel):
    """The length of the stored log."""

    size: int


class FailureStatement(BaseModel):
    """The reason why an attempt ended without a result."""

    model_config = ConfigDict(extra="allow")

    lease_token: UUID
    kind: FailureKind
    message: Text = ""
    retryable: Flag = False
    agent_ended: Annotated[
        Flag,
        Field(
            description="The agent was killed while it worked on this: such a job is given to two agents, and no more."
        ),
    ] = False


class FailureAnswer(BaseModel):
    """The state of the job afterwards; `lost` when the lease was gone before, `done` when an earlier attempt sent its result late."""

    answer: Literal["done", "failed", "cancelled", "queued", "lost"]
    job_state: JobState


class JobReceipt(ReportReceipt):
    """The effect of a job's result."""

    job_state: JobState
