"""Requests and answers about rules."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from pullback_service.fields import Flag, Name, Number, Sha
from pullback_service.rules.matching import GLOBS, KEYS, Rule

MOST_RULES = 500
MOST_TOLD = 20
Least = Annotated[Number, Field(gt=0, lt=1)]
Budget = Annotated[Number, Field(ge=0)]
Channels = Annotated[list[Name], Field(max_length=MOST_TOLD)]


class RuleStatement(BaseModel):
    """A rule of `pullback.toml`. It is about the series that match all its globs (`*`, `?`); what is left out matches all.

    For each of `at_least`, `budget`, `watch` and `tell` the last rule decides that matches and says it.
    """

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"metric": "array_allocs", "variant": "native", "budget": 0}]}
    )

    workload: Name | None = None
    case: Name | None = None
    variant: Name | None = None
    metric: Name | None = None
    machine: Name | None = None
    at_least: Least | None = Field(
        None,
        description="The least change that is announced, as a share: 0.02 is 2 %. Smaller ones are stored and not announced.",
    )
    budget: Budget | None = Field(
        None,
        description="The most that the metric may be; of `time` the most that it may be as a share of the baseline's.",
    )
    watch: Flag | None = Field(None, description="False: changes of these series are no incidents.")
    tell: Channels | None = Field(None, description="Names of the channels it is announced on; left out: all.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if all(getattr(self, key) is None for key in KEYS):
            raise PydanticCustomError("empty_rule", "A rule must set at_least, budget, watch or tell.")
        if self.budget is not None and (self.metric is None or {"*", "?"} & set(self.metric)):
            raise PydanticCustomError("budget", "A budget must name one metric, such as array_allocs.")
        if self.budget == 0 and self.metric == "time":
            raise PydanticCustomError(
                "budget", "A budget of time is a share of the baseline's: it must be more than 0."
            )
        return self

    def at(self, place: int) -> Rule:
        """The rule at its place in the file."""
        return Rule(place, **self.model_dump())


class RulesStatement(BaseModel):
    """All rules of a project's `pullback.toml`; they take the place of those that held."""

    model_config = ConfigDict(extra="forbid")

    trunk: Name | None = Field(None, description="`[detection] trunk` of the file.")
    anchor: Name | None = Field(
        None,
        description="`[detection] anchor` of the file: the tag that the newest commit is compared with once a week.",
    )
    anchor_sha: Sha | None = Field(
        None,
        description="The commit of that tag. Omitted if the clone does not have it: the commit sent before stays.",
    )
    rules: Annotated[list[RuleStatement], Field(max_length=MOST_RULES)] = []
    commit: Sha | None = Field(
        None,
        description="The commit of the file. Where the rules in force are of a later commit of the trunk, nothing is changed.",
    )
    branch: Name | None = Field(
        None,
        description="The branch that is checked out. Where that is not the trunk of the project, nothing is changed.",
    )


class RuleSummary(BaseModel):
    """A rule that holds, since when, and the commit of the file that brought it where that was said."""

    number: int = Field(description="Its number in the file, from 1 on.")
    workload: str | None
    case: str | None
    variant: str | None
    metric: str | None
    machine: str | None
    at_least: float | None
    budget: float | None
    watch: bool | None
    tell: list[str] | None
    since: datetime | None
    commit: str | None

    @classmethod
    def of(cls, rule: Rule) -> Self:
        """A rule."""
        values = {key: getattr(rule, key) for key in (*GLOBS, *KEYS)}
        return cls(number=rule.place + 1, since=rule.held_since, commit=rule.commit_sha, **values)


class ForeseenIncident(BaseModel):
    """An incident of the last 90 days: if it was told, and if it would have been by other rules.

    One that only a budget of these rules would have made has no id.
    """

    id: int | None = None
    url: str | None = None
    sentence: str
    told: bool
    would_be_told: bool


class RulesAnswer(BaseModel):
    """The rules of a project that hold. After a dry run: those that would, and what the last 90 days would have told by them."""

    project: str
    trunk: str = Field(description="The branch that is watched.")
    file_trunk: str | None = Field(
        description="`[detection] trunk` of the file; what `pullback project set` says comes first."
    )
    anchor: str | None = Field(description="The tag that the newest commit is compared with once a week.")
    anchor_sha: str | None = Field(description="The commit of that tag, once a clone that has it sent it.")
    commit: str | None = Field(description="The commit of the file that was sent last.")
    rules: list[RuleSummary]
    changed: bool = Field(False, description="True if the request changed anything, or would.")
    older: bool = Field(False, description="The rules in force are of a later commit, so nothing was changed.")
    last_90_days: list[ForeseenIncident] | None = None
