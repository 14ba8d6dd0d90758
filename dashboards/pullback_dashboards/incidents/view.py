"""The content of lists of incidents, as plain values."""

from dataclasses import dataclass
from datetime import datetime

from pullback_dashboards import links
from pullback_dashboards.choices import EmptyPage, Question
from pullback_dashboards.incidents.triage import Triage
from pullback_service.incidents.queries import OPEN, Detail
from pullback_service.incidents.sentences import in_quotes, sentence

EVIDENCE = {
    "failure": "failure",
    "exact": "count",
    "paired": "measured in turns",
    "levels": "later uploads",
    "budget": "budget",
    "absence": "absence",
    "anchor": "against the anchor",
}
TONES = {  # of kinds, with their signs
    "worse": ("worse", "▲"),
    "better": ("better", "▼"),
    "unsteady": ("unsure", "?"),
}
WRONG = ("failed", "✕")
"""The tone and the sign of all other kinds."""


@dataclass(frozen=True)
class VerdictLine:
    """The judgement of a person that counts."""

    verdict: str
    by: str
    at: datetime
    note: str | None
    link: str | None


@dataclass(frozen=True)
class IncidentLine:
    """An incident in one sentence; `told` is the same with code between backticks."""

    id: int
    href: str
    sentence: str
    told: str
    kind: str
    state: str
    is_open: bool
    commit: str
    commit_href: str
    cases: int
    machines: int
    found_at: datetime
    evidence: tuple[str, ...] = ()
    """The kinds of its evidence in words, the strongest first."""
    assignee: str | None = None
    verdict: VerdictLine | None = None
    cause: str | None = None

    @property
    def tone(self) -> str:
        """The tone of its kind."""
        return TONES.get(self.kind, WRONG)[0]

    @property
    def mark(self) -> str:
        """The sign of its kind, which needs no colour."""
        return TONES.get(self.kind, WRONG)[1]


@dataclass(frozen=True)
class IncidentsView:
    """A page of the incidents of a project: open ones, then the others."""

    project: str
    lines: tuple[IncidentLine, ...]
    questions: tuple[Question, ...]
    action: str
    """The address that a verdict on some of them is sent to, which is that of this page."""
    triage: Triage
    here_href: str
    feed_href: str
    badge_href: str
    """Addresses of the list, the feed and the badge of the same workload, case, variant, machine and kind."""
    newer_href: str | None = None
    older_href: str | None = None
    empty: EmptyPage | None = None

    @property
    def groups(self) -> tuple[tuple[str, str, tuple[IncidentLine, ...]], ...]:
        """Open incidents and the others, each with a name and a heading."""
        return tuple(
            (name, heading, lines)
            for name, heading, is_open in (("open", "Open", True), ("closed", "Closed", False))
            if (lines := tuple(line for line in self.lines if line.is_open is is_open))
        )


def line_of(detail: Detail) -> IncidentLine:
    """An incident as lists show it."""
    incident, verdict = detail.incident, detail.verdict
    return IncidentLine(
        id=incident.id,
        href=links.incident(detail.project, incident.id),
        sentence=sentence(detail),
        told=sentence(detail, quoted=_quoted),
        kind=incident.kind,
        state=incident.state,
        is_open=incident.state in OPEN,
        commit=detail.commit.sha,
        commit_href=links.commit(detail.project, detail.commit.sha),
        cases=len({change.case for change in detail.supporting}),
        machines=len({change.machine for change in detail.supporting}),
        found_at=incident.found_at,
        evidence=tuple(
            word for kind, word in EVIDENCE.items() if any(each.change.evidence == kind for each in detail.supporting)
        ),
        assignee=incident.assignee,
        verdict=None
        if verdict is None
        else VerdictLine(verdict.verdict, verdict.actor, verdict.at, verdict.note, verdict.link),
        cause=incident.cause,
    )


def _quoted(title: str) -> str:
    """A title between quotes, in which nothing is code."""
    return in_quotes(title.replace("`", "'"))
