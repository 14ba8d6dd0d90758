"""Answers about a check."""

from datetime import datetime
from typing import Literal, Self

from pydantic import BaseModel, Field

from pullback_service.addresses import API
from pullback_service.checks.findings import KINDS, Finding, FindingKind
from pullback_service.checks.queries import CheckResult
from pullback_service.commits.ref_names import NamedCommit
from pullback_service.comparisons.judging import Evidence, Outcome
from pullback_service.jobs.labels import device_of
from pullback_service.jobs.queries import StoredJob
from pullback_service.jobs.schemas import JobState
from pullback_service.ratio_fields import RatioFields, of_ratio
from pullback_service.rows_to_models import filled, plain


class CheckedCommit(BaseModel):
    """The commit that is checked, or the one it is compared with. `branch` is the one that was named for it."""

    sha: str = Field(examples=["c0ffee0000000000000000000000000000000001"])
    title: str | None
    author: str | None
    authored_at: datetime | None
    branch: str | None = Field(examples=["main"])
    series: int = Field(description="Number of series with results.", examples=[120])

    @classmethod
    def of(cls, named: NamedCommit, *, series: int) -> Self:
        """A commit as it was named."""
        return filled(cls, named, named.commit, series=series)


class ElsewhereSummary(BaseModel):
    """The same case, variant and metric on another machine, with another outcome."""

    machine: str
    outcome: Outcome
    evidence: Evidence | None


class CheckFinding(RatioFields):
    """A change of a series, or a failed or missing variant of a case.

    `missing` is a variant of a case that the base has and the head has not: it failed there, or the same suite ran on the
    same device of the machine without it. `budget` is over the budget of a rule and was not at the base. `ambiguous` was counted or measured in turns and stayed undecided. Outcome, evidence, ratio (natural log
    head/base), interval and reason are those of `GET /comparisons`. Without a metric it is about all of them, without a variant
    about all variants of the case.
    """

    kind: FindingKind
    case: str = Field(examples=["dense_bias_act[n=100,act=tanh,f4,cpu]"])
    workload: str
    variant: str | None = Field(examples=["native"])
    variant_kind: str | None = Field(examples=["tier"])
    machine: str = Field(examples=["box"])
    device: str | None = Field(None, examples=["cpu"])
    metric: str | None = Field(examples=["time"])
    unit: str | None = Field(examples=["s"])
    direction: Literal["smaller", "bigger"] | None
    outcome: Outcome | None
    evidence: Evidence | None
    base: float | None
    head: float | None
    provisional: bool
    reason: str | None
    elsewhere: list[ElsewhereSummary]

    @classmethod
    def of(cls, finding: Finding) -> Self:
        """A finding."""
        return cls.model_validate(_plain_finding(finding), from_attributes=True)


_plain_finding = plain(CheckFinding, **of_ratio("ratio"))


class CheckJob(BaseModel):
    """A job that measures both commits in turns."""

    id: int
    url: str
    suite: str
    cases: list[str] = Field(description="The cases to which its suite is narrowed; none: all of it.")
    variants: list[str]
    device: str = Field("cpu", examples=["cpu"])
    state: JobState
    awaits_approval: bool
    failure_message: str | None

    @classmethod
    def of(cls, stored: StoredJob) -> Self:
        """A job."""
        return filled(cls, stored.job, url=f"{API}/jobs/{stored.job.id}", device=device_of(stored.job.requires))


class CheckCounts(BaseModel):
    """Counts of findings of each kind, those that are left out of the list included, and of series."""

    wrong_gradient: int
    regression: int
    missing: int
    likely: int
    ambiguous: int
    budget: int = 0
    better: int
    likely_better: int
    unchanged: int
    compared: int = Field(description="Series that both commits have and that compare, or that an upload compares.")


class CheckAnswer(BaseModel):
    """A commit against its merge base.

    `base` is null where that is not known. `lacks` says why there are no or too few data for a verdict, with the
    remedy; it is empty if there are enough. `not_in_turns` counts series that agents could measure in turns and nobody
    has; a job of the kind `compare` of
    `suite`, `head` against `base`, would do that, and `wants_job` says that an agent can do it and nobody has asked for it: on
    the devices of `wants_job_on`, each of which takes a job of its own.
    """

    project: str
    against: str = Field(description="The base as named in the request, or the default branch.", examples=["main"])
    head: CheckedCommit
    base: CheckedCommit | None
    equal_code: bool = Field(
        description="The measured files of both commits are equal: no difference is due to the commit."
    )
    counts: CheckCounts
    findings: list[CheckFinding] = Field(description="The gravest first, 500 at most.")
    lacks: list[str]
    not_in_turns: int
    can_measure: bool = Field(description="An agent is available that can measure commits of this project.")
    suite: str = Field(examples=["quick"])
    wants_job: bool
    wants_job_on: list[str] = Field([], examples=[["cpu"]])
    jobs: list[CheckJob] = Field(description="Jobs that compare the two, newest first.")
    notes: list[str]

    @classmethod
    def of(cls, checked: CheckResult) -> Self:
        """The answer to a check."""
        outcomes = None if checked.judged is None else checked.judged.outcomes
        counts = {} if outcomes is None else outcomes.counts()
        compared = 0 if outcomes is None else len(outcomes) - counts.get("not_comparable", 0)
        return filled(
            cls,
            checked,
            head=CheckedCommit.of(checked.head, series=0 if outcomes is None else int(outcomes.has_candidate.sum())),
            base=None
            if checked.base is None or outcomes is None
            else CheckedCommit.of(checked.base, series=int(outcomes.has_reference.sum())),
            counts=CheckCounts(
                **{kind.replace("-", "_"): checked.counts.get(kind, 0) for kind in KINDS},
                unchanged=counts.get("same", 0) + counts.get("equal", 0),
                compared=compared,
            ),
            findings=[CheckFinding.of(each) for each in checked.findings],
            lacks=[*checked.lacks],
            wants_job=bool(checked.wants_job_on),
            wants_job_on=[*checked.wants_job_on],
            jobs=[CheckJob.of(each) for each in checked.jobs],
            notes=[*checked.notes],
        )
