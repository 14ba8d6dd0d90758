"""Requests and answers about incidents."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from pullback_service.fields import Name, Text
from pullback_service.incidents.accuracy import NONE_JUDGED, JudgedIncidents, NoticeableStep
from pullback_service.incidents.causes import Cause
from pullback_service.incidents.queries import Detail, NamedBisection, NamedChange, NamedCommit
from pullback_service.incidents.sentences import sentence
from pullback_service.models.incidents import IncidentEvent, Verdict
from pullback_service.ratio_fields import RatioFields
from pullback_service.rows_to_models import filled

IncidentKind: TypeAlias = Literal["worse", "better", "unsteady", "wrong_gradient", "failed", "missing"]
IncidentState: TypeAlias = Literal[
    "suspected", "confirming", "confirmed", "refuted", "unconfirmed", "likely", "resolved", "merged"
]
VerdictWord: TypeAlias = Literal["real", "noise", "expected", "fixed"]


def _is_web_address(link: str) -> str:
    if not link.startswith(("https://", "http://")):
        raise PydanticCustomError("link", "A link must begin with https:// or http://.")
    return link


class IncidentCommit(BaseModel):
    """A commit of an incident."""

    sha: str
    title: str | None
    author: str | None

    @classmethod
    def of(cls, commit: NamedCommit) -> Self:
        """A commit."""
        return filled(cls, commit)


class VerdictSummary(BaseModel):
    """A person's judgement of an incident. The newest one that was not revoked counts."""

    verdict: VerdictWord
    note: str | None
    link: str | None
    by: str = Field(description="The caller who gave it, as the audit log names callers.")
    at: datetime
    revoked_at: datetime | None
    revoked_by: str | None

    @classmethod
    def of(cls, stored: Verdict) -> Self:
        """A verdict."""
        return filled(cls, stored, by=stored.actor)


class IncidentRule(BaseModel):
    """A rule of `pullback.toml` that changed how an incident was announced, as the rule was then."""

    number: int = Field(description="Its number in the file, from 1 on.")
    says: str = Field(examples=["at_least = 0.02"])
    since: datetime | None = Field(description="Since when it holds.")
    commit: str | None = Field(description="The commit of the file that brought it.")


class IncidentSummary(BaseModel):
    """An incident: changes of one cause, after `reference` and up to `commit`."""

    id: int
    url: str
    project: str
    kind: IncidentKind
    state: IncidentState
    sentence: str
    reference: IncidentCommit = Field(description="The last commit that is known to be as it was before.")
    commit: IncidentCommit = Field(description="The first commit that is known to be changed.")
    ended: IncidentCommit | None = Field(description="The commit at which the level was back.")
    cases: int
    machines: int
    changes: int
    seen: bool = Field(description="True if it was found in results older than detection: it is not announced.")
    verdict: VerdictSummary | None
    assignee: str | None = Field(description="The person in charge.")
    merged_into: int | None
    job_id: int | None = Field(description="The newest job that measures it again.")
    found_at: datetime
    changed_at: datetime
    rules: list[IncidentRule] = Field([], description="The rules that changed its announcement.")
    cause: Cause | None = Field(
        None,
        description="The cause that its series show: `machine` if unrelated cases moved alike on one machine, `baseline` if all ratios of "
        "its cases moved and the baseline the other way, `tier` if one variant moved in several workloads and no other.",
    )

    @classmethod
    def of(cls, detail: Detail) -> Self:
        """An incident as lists show it."""
        return filled(cls, detail, detail.incident, **_made(detail))


class IncidentChange(RatioFields):
    """A change of one series; or of a case or variant that gave no measurement, without a metric.

    `evidence`: `exact` or `paired` from uploads, `levels` from the detector in later uploads, `budget` for a value over the budget of a
    rule, `absence` if reports of its suite no longer have it, `anchor` from comparisons with the anchor, else `failure`. The ratio is the
    natural log of the value after over the value before.
    """

    case: str
    workload: str
    device: str
    machine: str
    variant: str | None
    metric: str | None
    unit: str | None
    direction: str | None
    series_id: int | None
    kind: Literal["step", "unsteady", "wrong_gradient", "failed", "missing"]
    worse: bool | None
    evidence: Literal["exact", "paired", "levels", "failure", "budget", "absence", "anchor"]
    standing: Literal["claimed", "suspected", "borne_out", "ambiguous", "refuted"]
    reference: str
    commit: str
    ended: str | None
    before: float | None
    after: float | None
    message: str | None
    detector: str | None = Field(description="Name and version of the detector that found it.")

    @classmethod
    def of(cls, named: NamedChange) -> Self:
        """A change."""
        ended = None if named.ended is None else named.ended.sha
        return filled(cls, named, named.change, reference=named.reference.sha, commit=named.commit.sha, ended=ended)


class IncidentEventSummary(BaseModel):
    """An event of an incident; `told`: it was announced, with these details."""

    event: str
    at: datetime
    actor: str | None
    told: bool
    details: dict[str, Any]

    @classmethod
    def of(cls, event: IncidentEvent) -> Self:
        """An event."""
        return filled(cls, event)


class BisectionSummary(BaseModel):
    """The bisection of an incident. `undecided`: `culprit` is not confirmed, or is the last of several possible commits."""

    state: Literal["running", "found", "undecided"]
    culprit: str | None
    share: float | None = Field(
        description="The share of the change that the commit explains, compared with its parent; 1 is all of it."
    )
    job_id: int | None = Field(description="Its newest job.")
    jobs: int
    started_at: datetime


class IncidentDetail(IncidentSummary):
    """An incident with all its changes, events and verdicts."""

    evidence: list[IncidentChange]
    events: list[IncidentEventSummary]
    verdicts: list[VerdictSummary]
    bisection: BisectionSummary | None

    @classmethod
    def whole(
        cls,
        detail: Detail,
        *,
        events: Sequence[IncidentEvent],
        verdicts: Sequence[Verdict],
        bisection: NamedBisection | None,
    ) -> Self:
        """An incident in full."""
        return filled(
            cls,
            detail,
            detail.incident,
            **_made(detail),
            evidence=[IncidentChange.of(change) for change in detail.changes],
            events=[IncidentEventSummary.of(event) for event in events],
            verdicts=[VerdictSummary.of(verdict) for verdict in verdicts],
            bisection=None if bisection is None else BisectionSummary(**bisection._asdict()),
        )


class AccuracyPart(BaseModel):
    """Announced incidents of one `part`: `all`, or those of an `evidence` (`confirmed` or `likely`), a `machine` or a `workload`."""

    part: Literal["all", "evidence", "machine", "workload"]
    name: str = Field(description="The evidence, machine or workload; empty of `all`.")
    said: int = Field(description="Incidents that were confirmed or likely, improvements left out.")
    right: int = Field(description="Those that people called real, expected or fixed.")
    noise: int = Field(description="Those that people called noise.")
    withdrawn: int = Field(description="Those whose announcement was withdrawn.")
    precision: float | None = Field(
        description="The share of right ones among those that people judged; null while nobody judged."
    )
    interval: tuple[float, float] | None = Field(description="Its 95 % interval.")

    @classmethod
    def of(cls, judged: JudgedIncidents) -> Self:
        """A part."""
        return cls(**judged._asdict(), precision=judged.precision, interval=judged.interval)


class NoticedStep(BaseModel):
    """The smallest step that would be noticed within three commits in the series of a machine and metric, as natural log."""

    machine: str
    metric: str
    series: int
    half: float = Field(description="In half of the series.")
    most: float = Field(description="In 90 % of the series.")


class Accuracy(BaseModel):
    """The accuracy of incidents of a project, as people judged them, and the smallest steps that would be noticed."""

    project: str
    whole: AccuracyPart
    parts: list[AccuracyPart]
    noticed: list[NoticedStep]

    @classmethod
    def of(cls, project: str, judged: Sequence[JudgedIncidents], noticed: Sequence[NoticeableStep]) -> Self:
        """The accuracy of a project."""
        whole = next((each for each in judged if each.part == "all"), NONE_JUDGED)
        return cls(
            project=project,
            whole=AccuracyPart.of(whole),
            parts=[AccuracyPart.of(each) for each in judged if each.part != "all"],
            noticed=[NoticedStep(**each._asdict()) for each in noticed],
        )


class AssigneeRequest(BaseModel):
    """The person in charge of an incident; null for nobody."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"assignee": "ada"}]})

    assignee: Name | None


class VerdictRequest(BaseModel):
    """A person's judgement of an incident; it takes the place of an earlier one.

    `expected` accepts the new level, and `fixed` states that it was fixed: both resolve the incident. `noise` refutes it, and later
    suspicions of its series must be twice as large. `real` is stored and changes no state.
    """

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"verdict": "expected", "note": "Known."}]}
    )

    verdict: VerdictWord
    note: Text | None = None
    link: Annotated[Name, AfterValidator(_is_web_address)] | None = Field(
        None, description="Address of a discussion.", examples=["https://git.example/group/project/issues/7"]
    )


def _made(detail: Detail) -> dict[str, Any]:
    """The fields of an incident that are no columns of its table."""
    incident = detail.incident
    return {
        "url": f"/api/v1/incidents/{incident.id}",
        "sentence": sentence(detail),
        "reference": IncidentCommit.of(detail.reference),
        "commit": IncidentCommit.of(detail.commit),
        "ended": None if detail.ended is None else IncidentCommit.of(detail.ended),
        "cases": len({change.case for change in detail.supporting}),
        "machines": len({change.change.machine_id for change in detail.supporting}),
        "changes": len(detail.changes),
        "verdict": None if detail.verdict is None else VerdictSummary.of(detail.verdict),
        "merged_into": incident.merged_into_id,
        "rules": incident.rules or [],
    }
