"""Answers about machines."""

from datetime import date, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.fields import JsonObject, Name
from pullback_service.name_characters import SentName


class MachineStatement(BaseModel):
    """A machine as an agent describes it."""

    model_config = ConfigDict(extra="allow")

    host: Name | None = Field(None, description="Id of the computer, unique among equal computers.")
    fingerprint: Name = Field(description="The class: equal computers share it.")
    name: SentName
    facts: JsonObject = {}


class MachineSummary(BaseModel):
    """A machine. `accepts` is the lowest trust a job may have to be run there."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    name: str
    host: str | None = Field(description="The computer itself; null where none was reported.")
    fingerprint: str = Field(description="The class: equal computers share it.")
    facts: dict[str, Any]
    first_seen_at: datetime
    last_seen_at: datetime
    accepts: Literal["trusted", "untrusted"]


class MachineChange(BaseModel):
    """Changes to a machine."""

    model_config = ConfigDict(extra="forbid")

    accepts: Literal["trusted", "untrusted"] = Field(
        description="`untrusted` lets approved jobs of forks run there, in addition to the project's own."
    )


class Noise(BaseModel):
    """The results of A/A comparisons: two runs of one commit differ by noise alone.

    `floor` is the 95th percentile of |log ratio| of A/A groups, 0.02 and `provisional` while there are fewer than 20 of
    them. `false_alarms` counts comparisons that claimed a difference all the same.
    """

    model_config = ConfigDict(from_attributes=True)

    floor: float
    provisional: bool
    groups: int
    comparisons: int
    false_alarms: int
    last_at: datetime | None


class WorkloadNoise(Noise):
    """The noise of one workload on the machine."""

    workload: str


class DayNoise(Noise):
    """The noise of one day, by the clock of the service in UTC."""

    day: date


class MetricNoise(BaseModel):
    """Counts of a metric's comparisons with itself, and of those that claimed a difference."""

    model_config = ConfigDict(from_attributes=True)

    metric: str
    comparisons: int
    differing: int
    last_at: datetime


class MachineNoise(Noise):
    """The noise of a machine: of all its workloads, of each, and how it changed.

    `truncated` says that there were more comparisons in the window than are looked at; the newest are. `metrics` lists
    all that were compared: a count that differs from itself is not repeatable, and shows as `differing`.
    """

    machine: str
    metric: str
    days: int
    truncated: bool
    workloads: list[WorkloadNoise]
    history: list[DayNoise]
    metrics: list[MetricNoise]


class FactsChange(BaseModel):
    """Facts that were told differently than before; what is missing on one side was not told there."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    at: datetime
    before: dict[str, Any]
    after: dict[str, Any]
