"""Answers about the service itself."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.jobs.schemas import JobState


class ChoreStatus(BaseModel):
    """Chores of one kind. Ages are in seconds, of the oldest that waits or runs and of the newest that failed."""

    model_config = ConfigDict(from_attributes=True)

    task: str
    waiting: int
    waiting_s: float | None
    running: int
    running_s: float | None
    running_chore: int | None = Field(description="The one that runs the longest, by its number in the worker's log.")
    failed: int = Field(description="Number within the last seven days.")
    failed_s: float | None
    failed_chore: int | None


class QueueStatus(BaseModel):
    """Jobs by state, the age of the oldest waiting one, and the jobs that no agent can take now."""

    by_state: dict[JobState, int]
    waiting_s: float | None
    awaiting_approval: int
    unservable: int = Field(description="Waiting for labels or a trust that no agent of the last hour offers.")
    lost: list[int] = Field(description="Newest jobs that were lost in the last seven days, at most ten.")
    lost_because: str | None = Field(None, description="Message of the newest of them, shortened.")


class Status(BaseModel):
    """The state of the service. Each finding is a sentence with a remedy; without one all is well."""

    status: Literal["well", "attention"]
    findings: list[str]
    workers: int
    agents: int = Field(description="Agents that were heard of in the last five minutes.")
    chores: list[ChoreStatus]
    jobs: QueueStatus
    unfollowed_reports: int = Field(description="Uploads that wait longer than two minutes to be followed up.")
    overdue_leases: int = Field(description="Leases that ran out more than a minute ago and were not taken back.")
