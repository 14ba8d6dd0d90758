"""The content of the page of an incident, as plain values."""

from dataclasses import dataclass
from datetime import datetime

from pullback_dashboards import links
from pullback_dashboards.case.differences import Difference
from pullback_dashboards.case.provenance import MeasuredFact
from pullback_dashboards.case.view import CaseView, PlanChange
from pullback_dashboards.charts.forest import Forest
from pullback_dashboards.incident.event_text import EventLine
from pullback_dashboards.incident.evidence import ChangeRow, Counterevidence, SeriesChart, forest_of
from pullback_dashboards.incidents.triage import Triage
from pullback_dashboards.incidents.view import IncidentLine
from pullback_dashboards.wording import factors
from pullback_dashboards.wording.plurals import counted
from pullback_service.incidents.confirmation import GIVEN_UP_AFTER_DAYS
from pullback_service.incidents.evidence import Message
from pullback_service.incidents.lifecycle import AFTER_NOISE
from pullback_service.incidents.queries import Detail, NamedBisection

_MEANINGS = {
    "confirmed": "Counts, comparisons or failures show it.",
    "likely": "Later uploads show it; no agent can measure it in turns.",
    "suspected": "Only the detector sees it. It waits for a measurement or for later commits and is not announced yet.",
    "confirming": "Only the detector sees it. A job measures both commits again; it is not announced yet.",
    "resolved": "It is over.",
    "unconfirmed": "It was measured again without an answer, or not at all: the level was back before, or the machine had no time left or may have changed.",
    "refuted": "Measured again, nothing or only the machine had changed; or its evidence is gone; or a person called it noise.",
    "merged": "It became a part of another incident.",
}
_CAUSES = {
    "machine": "Cases that share nothing but the machine moved by similar factors. A slower machine has that effect, and so has a commit that "
    "changes everything: to tell them apart, measure both commits in turns.",
    "baseline": "The values of the other variants did not change: the baseline of their ratios did.",
    "tier": "The other variants of the same cases did not change: only this variant did.",
}


@dataclass(frozen=True)
class MessageLine:
    """A message about an incident on a channel."""

    channel: str
    kind: str
    event: str
    state: str
    at: datetime
    attempts: int
    answer: str | None


@dataclass(frozen=True)
class BisectionResult:
    """The search for the commit, and what it found."""

    state: str
    jobs: int
    commit: str | None
    commit_href: str | None
    share: float | None
    job_href: str | None

    @property
    def words(self) -> str:
        """Its standing, without the commit."""
        if self.state == "running":
            return f"The commit is being searched for, in {counted(self.jobs, 'job')} so far."
        if self.state == "undecided":
            return "No single commit was found."
        explains = "" if self.share is None else f", and explains {min(1.0, max(0.0, self.share)):.0%} of it"
        return f"Its commit was found in {counted(self.jobs, 'job')}{explains}:"


@dataclass(frozen=True)
class CaseDifferences:
    """Differences between the two commits in the case that speaks for all: facts of software and machine, and the program."""

    case: str
    variant: str
    before: str
    now: str
    case_href: str
    environment: tuple[Difference, ...]
    measured: tuple[MeasuredFact, ...]
    """Origins that are others than before: text of the workload, measured files, code, harness."""
    plan: PlanChange | None


@dataclass(frozen=True)
class IncidentView:
    """An incident with its evidence, what happened to it, and the commands for it."""

    project: str
    line: IncidentLine
    reference: str
    reference_href: str
    compare_href: str
    ended: str | None
    ended_href: str | None
    merged_into: int | None
    merged_href: str | None
    job: int | None
    job_href: str | None
    triage: Triage
    is_cause_enough: bool
    """True if it is unconfirmed because it may be the machine, and was never measured in turns."""
    is_out_of_time: bool
    """True if it is unconfirmed because the machine had no time to measure it on the day it was found."""
    can_measure: bool
    can_bisect: bool
    seen: bool
    rules: tuple[str, ...]
    """The rules that changed what is told of it."""
    charts: tuple[SeriesChart, ...]
    changes: tuple[ChangeRow, ...]
    left_out: int
    against: tuple[Counterevidence, ...]
    """Objections to it."""
    differing: CaseDifferences | None
    """Differences in program and software; None if no file tells of it any more."""
    events: tuple[EventLine, ...]
    bisection: BisectionResult | None
    messages: tuple[MessageLine, ...] | None
    """Messages sent of it, for those who may see that; None for others."""
    reproduce: str | None
    verdict_command: str

    @property
    def meaning(self) -> str:
        """The meaning of its state, empty if its cause alone decided that."""
        if self.is_out_of_time:
            return (
                "The machine had no time left for it on the day it was found. It is measured once a later day has time for it, "
                f"up to {GIVEN_UP_AFTER_DAYS} days after it was found, or on request: pullback incident confirm {self.line.id}."
            )
        return "" if self.is_cause_enough else _MEANINGS[self.line.state]

    @property
    def cause(self) -> str:
        """The meaning of its cause, empty if none is known."""
        return _CAUSES.get(self.line.cause or "", "")

    @property
    def raised(self) -> str:
        """The size that is asked of its series since somebody called it noise, in a sentence."""
        sizes = [AFTER_NOISE * abs(row.log_ratio) for row in self.changes if row.log_ratio is not None]
        if self.line.verdict is None or self.line.verdict.verdict != "noise" or not sizes:
            return ""
        first, last = factors.step(min(sizes)), factors.step(max(sizes))
        span = first if first == last else f"{first} to {last}, each of twice its size,"
        return f"Until their next level its series are suspected again only of more than {span}."

    @property
    def forest(self) -> Forest:
        """The scale that all ratios share."""
        return forest_of(self.changes, self.against)

    @property
    def has_ratios(self) -> bool:
        """True if any change or objection has a ratio."""
        return any(each.log_ratio is not None for each in (*self.changes, *self.against))

    @property
    def has_pairs(self) -> bool:
        """True if a change was measured in turns, and values of both commits are shown beside it."""
        return any(row.evidence == "paired" and row.values for row in self.changes)


def differing_of(case: CaseView | None, variant: str) -> CaseDifferences | None:
    """The differences, by the page of the case at the commit; None where that cannot be told."""
    if case is None or case.before is None or not case.before_is_told:
        return None
    plans = [block.plan for block in case.variants if block.variant == variant]
    return CaseDifferences(
        case=case.case,
        variant=variant,
        before=case.before.commit.short,
        now=case.commit.short,
        case_href=links.case(case.project, case.commit.sha, case.case, machine=case.machine),
        environment=case.environment,
        measured=tuple(fact for fact in case.measured if fact.before),
        plan=plans[0] if plans else None,
    )


def bisected_of(project: str, result: NamedBisection | None) -> BisectionResult | None:
    """The search for the commit of an incident."""
    if result is None:
        return None
    return BisectionResult(
        state=result.state,
        jobs=result.jobs,
        commit=result.culprit,
        commit_href=None if result.culprit is None else links.commit(project, result.culprit),
        share=result.share,
        job_href=None if result.job_id is None else links.job(result.job_id),
    )


def message_of(sent: Message) -> MessageLine:
    """A message as the page shows it."""
    at = sent.sent_at or sent.created_at
    return MessageLine(sent.channel, sent.kind, sent.event, sent.state, at, sent.attempts, sent.answer)


def ranges_of(detail: Detail) -> set[tuple[int, int]]:
    """Both ends of each change, and of the incident."""
    ends = {(each.change.reference_id, each.change.commit_id) for each in detail.changes}
    return ends | {(detail.reference.id, detail.commit.id)}


def can_measure(detail: Detail) -> bool:
    """True if something of it can be measured again: a metric, not a failure, and of an incident that stands by itself."""
    return detail.incident.state != "merged" and any(each.metric is not None for each in detail.changes)


def can_bisect(detail: Detail) -> bool:
    """True if it is confirmed of more than one commit."""
    return detail.incident.state == "confirmed" and detail.commit.parent != detail.reference.sha


def rules_of(detail: Detail) -> tuple[str, ...]:
    """The rules that changed what is told of an incident, in words."""
    return tuple(
        f"rule {rule['number']} of pullback.toml ({rule['says']})"
        + (f", since {rule['since'][:10]}" if rule["since"] else "")
        + (f" by {rule['commit'][:7]}" if rule["commit"] else "")
        for rule in detail.incident.rules or ()
    )
