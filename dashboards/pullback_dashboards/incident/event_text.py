"""Events of an incident, in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pullback_dashboards import links
from pullback_service.incidents.sentences import SHORT
from pullback_service.models.incidents import IncidentEvent

_WORDS = {
    "found": "found",
    "suspected": "suspected by the detector",
    "confirming": "waits for a job that measures both commits again",
    "confirmed": "confirmed",
    "likely": "likely: later uploads show it too",
    "grown": "grown: twice its size, or on another machine",
    "unconfirmed": "not confirmed",
    "refuted": "refuted",
    "resolved": "resolved",
    "withdrawn": "withdrawn: a false alarm",
    "split": "split from",
    "merged": "became a part of",
    "assigned": "assigned to",
    "measured_again": "measured again on request",
    "bisecting": "search for the commit began",
    "culprit": "the commit was found:",
    "bisected": "search for the commit ended without a single one",
    "rest": "a part of the change is left",
    "real": "said to be real",
    "noise": "said to be noise",
    "expected": "marked as expected: the new level is accepted",
    "fixed": "said to be fixed",
    "revoked": "the verdict was taken back",
}


@dataclass(frozen=True)
class EventLine:
    """Something that happened to an incident; `others` are the incidents that it was split from or became a part of."""

    at: datetime
    event: str
    actor: str | None
    told: bool
    note: str | None = None
    others: tuple[tuple[int, str], ...] = ()
    commit: str | None = None
    commit_href: str | None = None
    job: int | None = None
    job_href: str | None = None

    @property
    def words(self) -> str:
        """The event in words."""
        return _WORDS.get(self.event, self.event)


def lines_of(project: str, events: Sequence[IncidentEvent]) -> tuple[EventLine, ...]:
    """Events of an incident, oldest first."""
    return tuple(_line(project, event) for event in events)


def _line(project: str, event: IncidentEvent) -> EventLine:
    details = event.details
    others = [details["into"]] if event.event == "merged" else details.get("from", ()) if event.event == "split" else ()
    commit = details["commit"] if event.event == "culprit" else None
    job = details.get("job")
    return EventLine(
        event.at,
        event.event,
        event.actor,
        event.told,
        _note(event.event, details),
        tuple((other, links.incident(project, other)) for other in others),
        None if commit is None else commit[:SHORT],
        None if commit is None else links.commit(project, commit),
        job,
        None if job is None else links.job(job),
    )


def _note(event: str, details: Mapping[str, Any]) -> str | None:
    if event == "assigned":
        return details["to"] or "nobody"
    return details.get("note") or details.get("because")
