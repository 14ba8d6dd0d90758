"""The content of the page of an incident, as plain values."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pullback_dashboards import links
from pullback_dashboards.history import metric_label
from pullback_dashboards.incidents.view import IncidentLine
from pullback_dashboards.measuring_again import compare_command, measure_command
from pullback_dashboards.wording import factors, units
from pullback_dashboards.wording.counting import counted
from pullback_service.incidents.queries import Detail, NamedChange
from pullback_service.models.incidents import IncidentEvent

MOST_CHANGES = 100
"""Changes of an incident that its page shows; the API has all."""
_MOST_CASES = 8

_MEANINGS = {
    "confirmed": "Counts, comparisons or failures show it.",
    "likely": "Later uploads show it; no agent can measure it in turns.",
    "suspected": "Only the detector sees it. It waits for a measurement or for later commits, and nobody is told of it yet.",
    "confirming": "Only the detector sees it. A job measures both commits again, and nobody is told of it yet.",
    "resolved": "It is over.",
    "unconfirmed": "It was measured again without an answer, or not at all: the level was back before, or the machine had no time left.",
    "refuted": "Measured again nothing had changed, or the machine had; or what spoke for it is gone, or somebody called it noise.",
    "merged": "It became a part of another incident.",
}
_EVIDENCE = {
    "exact": "count",
    "paired": "measured in turns",
    "levels": "later uploads",
    "failure": "failure",
    "budget": "budget",
    "absence": "absence",
    "anchor": "against the anchor",
}
_STANDINGS = {
    "suspected": "suspected",
    "borne_out": "borne out by later commits",
    "ambiguous": "ambiguous",
    "refuted": "refuted",
}
_EVENTS = {
    "split": "split from",
    "merged": "became a part of",
    "assigned": "put in charge",
    "measured_again": "measured again",
    "bisecting": "bisection began",
    "culprit": "commit found",
    "bisected": "bisection ended",
    "rest": "a part is left",
}
_KINDS = {
    "unsteady": "does not count alike",
    "wrong_gradient": "wrong gradient",
    "failed": "does not run",
    "missing": "missing",
}


@dataclass(frozen=True)
class ChangeRow(factors.RatioNumbers):
    """A change of one series; or of a case, or a variant of it, that gave no measurement, which has no metric."""

    case: str
    case_href: str
    variant: str | None
    metric: str | None
    unit: str | None
    machine: str
    reference: str
    commit: str
    compare_href: str
    kind: str
    evidence: str
    standing: str
    before: float | None
    after: float | None
    groups: int | None
    message: str | None

    @property
    def metric_in_words(self) -> str:
        """The metric, or what came instead of a number."""
        return _KINDS.get(self.kind, "") if self.metric is None else metric_label(self.metric)

    @property
    def values(self) -> str:
        """The values before and after, where they are known."""
        if self.before is None and self.after is None:
            return ""
        unit = self.unit or ""
        return f"{units.quantity(self.before, unit)} → {units.quantity(self.after, unit)}"

    @property
    def factor(self) -> str:
        """The value after over that before."""
        return "" if self.log_ratio is None else factors.factor(self.log_ratio, self.low, self.high)

    @property
    def doubt(self) -> str:
        """The interval of the factor, and how many groups it is of."""
        parts = [] if self.low is None or self.high is None else [factors.interval(self.low, self.high)]
        return ", ".join([*parts, *([counted(self.groups, "group")] if self.groups else [])])

    @property
    def evidence_in_words(self) -> str:
        """The kind of evidence, and how it stands where that is not all."""
        standing = _STANDINGS.get(self.standing)
        return _EVIDENCE[self.evidence] + (f", {standing}" if standing else "")


@dataclass(frozen=True)
class EventLine:
    """Something that happened to an incident; `others` are the incidents that it was split from or became a part of."""

    at: datetime
    event: str
    actor: str | None
    told: bool
    note: str | None = None
    others: tuple[tuple[int, str], ...] = ()

    @property
    def words(self) -> str:
        """The event in words."""
        return _EVENTS.get(self.event, self.event)


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
    assignee: str | None
    seen: bool
    rules: tuple[str, ...]
    """The rules that changed what is told of it."""
    changes: tuple[ChangeRow, ...]
    left_out: int
    events: tuple[EventLine, ...]
    reproduce: str | None
    verdict_command: str

    @property
    def meaning(self) -> str:
        """The meaning of its state."""
        return _MEANINGS[self.line.state]

    @property
    def has_pairs(self) -> bool:
        """True if a change was measured in turns, and values of both commits are shown beside it."""
        return any(row.evidence == "paired" and row.values for row in self.changes)


def rows_of(project: str, changes: Sequence[NamedChange]) -> tuple[ChangeRow, ...]:
    """The changes of an incident: those that are claimed first, the largest of each case first."""

    def rank(each: NamedChange) -> tuple[object, ...]:
        size = abs(each.change.log_ratio) if each.change.log_ratio is not None else 0.0
        return (
            each.change.standing != "claimed",
            each.case,
            each.change.variant or "",
            -size,
            each.metric or "",
            each.machine,
        )

    return tuple(_row(project, each) for each in sorted(changes, key=rank)[:MOST_CHANGES])


def _row(project: str, named: NamedChange) -> ChangeRow:
    change, reference, commit = named.change, named.reference.sha, named.commit.sha
    return ChangeRow(
        case=named.case,
        case_href=links.case(project, commit, named.case, machine=named.machine),
        variant=change.variant,
        metric=named.metric,
        unit=named.unit,
        machine=named.machine,
        reference=reference,
        commit=commit,
        compare_href=links.compare(project, base=reference, head=commit, machine=named.machine),
        kind=change.kind,
        evidence=change.evidence,
        standing=change.standing,
        before=change.before,
        after=change.after,
        log_ratio=change.log_ratio,
        low=change.low,
        high=change.high,
        groups=change.n,
        message=change.message,
    )


def rules_of(detail: Detail) -> tuple[str, ...]:
    """The rules that changed what is told of an incident, in words."""
    return tuple(
        f"rule {rule['number']} of pullback.toml ({rule['says']})"
        + (f", since {rule['since'][:10]}" if rule["since"] else "")
        + (f" by {rule['commit'][:7]}" if rule["commit"] else "")
        for rule in detail.incident.rules or ()
    )


def lines_of(project: str, events: Sequence[IncidentEvent]) -> tuple[EventLine, ...]:
    """Events of an incident."""

    def line(event: IncidentEvent) -> EventLine:
        others = event.details.get("from", ()) if event.event == "split" else ()
        if event.event == "merged":
            others = [event.details["into"]]
        details = event.details
        note = details.get("note") or details.get("because")
        if event.event == "assigned":
            note = details["to"] or "nobody"
        elif event.event == "culprit":
            note = details["commit"]
        told = tuple((other, links.incident(project, other)) for other in others)
        return EventLine(event.at, event.event, event.actor, event.told, note, told)

    return tuple(map(line, events))


def reproduce_command(detail: Detail) -> str:
    """The command that measures both ends of the range in turns, in the cases that show it; of a failure the commit alone."""
    cases: dict[str, set[str]] = {}
    for each in detail.changes:
        cases.setdefault(each.case, set()).update({each.change.variant} - {None})  # type: ignore[arg-type] # none is left
    chosen = sorted(cases)[:_MOST_CASES]
    variants = sorted(set.intersection(*(cases[case] for case in chosen))) if chosen else []
    # A variant that is asked for and that a case does not have fails.
    if any(cases[case] != set(variants) for case in chosen):
        variants = []
    if detail.incident.kind in {"wrong_gradient", "failed", "missing"}:
        command, end = measure_command(detail.commit.sha), ["-o", "measured"]
    else:
        command, end = compare_command(detail.reference.sha, detail.commit.sha), []
    options = ["--suite", "standard", *(part for case in chosen for part in ("--case", case))]
    options += [part for variant in variants for part in ("--variant", variant)]
    return f"{command} {shlex.join([*options, *end])}"
