"""Announcing incidents: every notification about an incident is made here."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.ids import ProjectId
from pullback_service.incidents.payload import facts_of
from pullback_service.incidents.ruling import decide_for
from pullback_service.models.incidents import Incident, IncidentEvent
from pullback_service.notifications.outbox import enqueue

Event: TypeAlias = Literal["confirmed", "likely", "grown", "resolved", "withdrawn", "culprit"]
ANNOUNCED_KINDS: Final = frozenset({"worse", "wrong_gradient", "failed", "unsteady", "missing"})
"""Kinds of incidents that are announced. Improvements are only shown on pages."""
BEGINNINGS: Final[tuple[Event, ...]] = ("confirmed", "likely")
"""Events that announce an incident first; rules decide who gets them, and later events go to the same channels."""
GROWN: Final = 2.0
"""The factor of its size at which an announced incident is announced again, as a reply."""
_OPENINGS: Final[Mapping[Event, str]] = {
    "confirmed": "", "likely": "Likely: ", "grown": "Grown: ", "resolved": "Resolved: ", "withdrawn": "Withdrawn: ",
    "culprit": "Culprit found: ",
}  # fmt: skip


async def announce(
    session: AsyncSession,
    incident: Incident,
    event: Event,
    *,
    actor: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Store an event of an incident and announce it, once, in the same transaction.

    Improvements, and findings in results that are older than detection, are not announced; rules of the project may choose the channels,
    or none.
    """
    if event in BEGINNINGS:
        channels, held = await decide_for(session, incident)
        incident.told_to = None if channels is None else sorted(channels)
        incident.rules = [each.as_json() for each in held]
    tells = not incident.seen and incident.kind in ANNOUNCED_KINDS and incident.told_to != []
    facts: Mapping[str, Any] = {**(await facts_of(session, incident) if tells else {}), **(details or {})}
    noted = note_event(session, incident, event, actor=actor, told=tells, details=facts)
    await session.flush()
    if tells:
        name = incident.kind if event == "confirmed" and incident.kind in {"wrong_gradient", "missing"} else event
        title = _OPENINGS[event] + facts["title"]
        message = {**facts, "title": title, "severity": incident.kind}
        key = f"incident {incident.id}, event {noted.id}"
        await enqueue(session, ProjectId(incident.project_id), name, key, message, only=incident.told_to)


async def announce_held_back(session: AsyncSession, incident: Incident) -> None:
    """Announce an incident that rules held back when it began, if they no longer do: it grew, or the rules changed."""
    state = incident.state
    if (
        incident.told_to == []
        and not incident.seen
        and state in BEGINNINGS
        and (await decide_for(session, incident)).tells
    ):
        await announce(session, incident, state)


async def announce_growth(session: AsyncSession, incident: Incident) -> None:
    """Announce an incident again if it reached twice its announced size in a metric, or another machine.

    Index: ix_incident_event_incident_id; as `facts_of`.
    """
    if incident.state not in BEGINNINGS:
        return
    statement = (
        select(IncidentEvent.details)
        .where(
            IncidentEvent.incident_id == incident.id,
            IncidentEvent.told,
            IncidentEvent.event.in_((*BEGINNINGS, "grown")),
        )
        .order_by(IncidentEvent.id.desc())
        .limit(1)
    )
    told = await session.scalar(statement)
    if told is None or "sizes" not in told:  # not announced, or by an earlier release
        return
    facts = await facts_of(session, incident)
    if has_grown(told["sizes"], facts["sizes"]):
        await announce(session, incident, "grown")


def has_grown(told: Mapping[str, Mapping[str, float]], now: Mapping[str, Mapping[str, float]]) -> bool:
    """True if a machine is new, or a metric is twice as large as on any machine before. Sizes are by machine and metric."""
    before, since = _largest(told), _largest(now)
    return bool(now.keys() - told.keys()) or any(
        size >= GROWN * before[metric] > 0 for metric, size in since.items() if metric in before
    )


def _largest(sizes: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    """The largest change of each metric, on any machine."""
    largest: dict[str, float] = {}
    for of_machine in sizes.values():
        for metric, size in of_machine.items():
            largest[metric] = max(size, largest.get(metric, 0.0))
    return largest


def note_event(
    session: AsyncSession,
    incident: Incident,
    event: str,
    *,
    actor: str | None = None,
    told: bool = False,
    details: Mapping[str, Any] | None = None,
) -> IncidentEvent:
    """Store an event of an incident."""
    noted = IncidentEvent(incident_id=incident.id, event=event, actor=actor, told=told, details=dict(details or {}))
    session.add(noted)
    return noted


async def announced_state(session: AsyncSession, incident: Incident) -> Literal["told", "withdrawn", "never"]:
    """The announcement of an incident: made, withdrawn or never made. One that was split from another has that one's.

    Index: ix_incident_event_incident_id.
    """
    events = (
        await session.scalars(
            select(IncidentEvent).where(IncidentEvent.incident_id == incident.id).order_by(IncidentEvent.id)
        )
    ).all()
    of_parents = [parent for event in events if event.event == "split" for parent in event.details.get("from", ())]
    if of_parents:
        told_before = await session.scalar(
            select(IncidentEvent.id)
            .where(
                IncidentEvent.incident_id.in_(of_parents),
                IncidentEvent.told,
                IncidentEvent.event.in_(("confirmed", "likely")),
                IncidentEvent.at <= incident.found_at,
            )
            .limit(1)
        )
        if told_before is not None and not any(event.told for event in events):
            return "told"
    told = [event.event for event in events if event.told]
    if not told:
        return "never"
    return "withdrawn" if told[-1] == "withdrawn" else "told"
