"""Requests and answers of agents."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.commits.schemas import CommitSummary
from pullback_service.fields import Labels, Name, Number, Text
from pullback_service.jobs.schemas import SpoolStatement, TrustLevel
from pullback_service.machines.schemas import MachineStatement
from pullback_service.name_characters import SentName


class Enrolment(BaseModel):
    """An agent introduces itself."""

    model_config = ConfigDict(extra="allow")

    name: SentName
    labels: Labels = Field(
        default={},
        description="Properties that jobs can require. `device` is where the agent measures: the CPU, if left out.",
    )
    machine: MachineStatement


class EnrolmentAnswer(BaseModel):
    """The agent that was enrolled. `secret` is its own token, where it came with an enrolment code."""

    agent_id: int
    machine_id: int
    heartbeat_s: float
    lease_s: float
    secret: str | None = None


class ClaimRequest(BaseModel):
    """An agent asks for work, and is willing to wait for it."""

    model_config = ConfigDict(extra="allow")

    wait_s: Annotated[Number, Field(ge=0, le=30)] = 0
    labels: Labels | None = Field(None, description="Default: those of the enrolment.")
    kinds: list[Name] = Field(
        default=["run"], max_length=20, description="Kinds of jobs the agent knows how to do; it is given no others."
    )
    spool: SpoolStatement | None = None
    refuses: Text | None = Field(
        None,
        description="The reason, for people, why the agent takes no job at present; it gets none.",
        examples=[None, "1.2 GiB are free and 5.0 are wanted"],
    )


class ClaimedJob(BaseModel):
    """The job that an agent claimed."""

    id: int
    project: str
    repository: str | None = Field(
        None,
        description="The repository that the commit is fetched from; null: from the clone that the agent was given.",
    )
    commit: CommitSummary
    suite: str
    cases: list[str] = Field(
        default=[], description="Names of cases, or globs over them, that narrow the suite further."
    )
    variants: list[str] = Field(default=[], description="Variants to measure; none: those that the project measures.")
    kind: str
    requires: dict[str, Any] = Field(
        default={},
        description="Labels that the job requires of an agent. `device`, always there, is where to measure.",
    )
    timeout_s: float
    effort: int = Field(1, description="For the kind `compare`: multiple of the usual duration.")
    reference: CommitSummary | None = Field(None, description="Of the kind `compare`: the commit to compare with.")
    trust: TrustLevel = Field(
        "trusted", description="Whose code it runs; an agent runs that of forks (`untrusted`) in a sandbox alone."
    )


class Claim(BaseModel):
    """A job and the time-limited right to do it: every call about it brings the lease token."""

    job: ClaimedJob
    attempt: int
    lease_token: UUID
    lease_s: float
    heartbeat_s: float


class AgentSummary(BaseModel):
    """An agent, and what it is doing."""

    id: int
    name: str
    machine_id: int
    machine: str
    labels: dict[str, Any]
    enrolled_at: datetime
    last_seen_at: datetime
    present: bool = Field(description="True if it was heard of in the last five minutes.")
    job_id: int | None
    job_since: datetime | None = Field(description="The time at which it was given the job.")
    phase: str | None
    progress: dict[str, Any] | None
    spool: SpoolStatement | None = Field(description="Results it has not delivered yet; null if it never reported any.")
    refuses: str | None = Field(description="The agent's own reason for taking no jobs at present.")
