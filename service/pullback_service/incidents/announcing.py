"""Telling people: the one place through which whatever is told of an incident goes."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.ids import ProjectId
from pullback_service.incidents.facts import facts_of
from pullback_service.incidents.ruling import decide_for
from pullback_service.models.incidents import Incident, IncidentEvent
from pullback_service.notifications.outbox import enqueue

Event: TypeAlias = Literal["confirmed", "likely", "resolved", "withdrawn", "culprit"]
TOLD_OF: Final = frozenset({"worse", "wrong_gradient", "failed", "unsteady", "missing"})
"""Kinds of incidents that people are told of. Improvements are shown."""
BEGINNINGS: Final[tuple[Event, ...]] = ("confirmed", "likely")
"""Events by which people hear of an incident first; rules decide about these, and later ones go where these went."""
_OPENINGS: Final[Mapping[Event, str]] = {
    "confirmed": "", "likely": "Likely: ", "resolved": "Resolved: ", "withdrawn": "Withdrawn, not borne out: ",
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
    """Write down what happened to an incident, and tell it, once, in the transaction in which it happens.

    Nobody is told of improvements, nor of what was found in results that are older than detection; and where rules of the
    project say so, only some channels are, or none.
    """
    if event in BEGINNINGS:
        channels, held = await decide_for(session, incident)
        incident.told_to = None if channels is None else sorted(channels)
        incident.rules = [each.as_json() for each in held]
    tells = not incident.seen and incident.kind in TOLD_OF and incident.told_to != []
    facts: Mapping[str, Any] = {**(await facts_of(session, incident) if tells else {}), **(details or {})}
    noted = note_event(session, incident, event, actor=actor, told=tells, details=facts)
    await session.flush()
    if tells:
        name = incident.kind if event == "confirmed" and incident.kind in {"wrong_gradient", "missing"} else event
        title = _OPENINGS[event] + facts["title"]
        message = {**facts, "title": title, "severity": incident.kind}
        key = f"incident {incident.id}, event {noted.id}"
        await enqueue(session, ProjectId(incident.project_id), name, key, message, only=incident.told_to)


async def tell_what_was_kept(session: AsyncSession, incident: Incident) -> None:
    """Tell an incident that rules kept back when it began, where they do not any more: it grew, or they are others."""
    state = incident.state
    if (
        incident.told_to == []
        and not incident.seen
        and state in BEGINNINGS
        and (await decide_for(session, incident)).tells
    ):
        await announce(session, incident, state)


def note_event(
    session: AsyncSession,
    incident: Incident,
    event: str,
    *,
    actor: str | None = None,
    told: bool = False,
    details: Mapping[str, Any] | None = None,
) -> IncidentEvent:
    """Write down what happened to an incident."""
    noted = IncidentEvent(incident_id=incident.id, event=event, actor=actor, told=told, details=dict(details or {}))
    session.add(noted)
    return noted


async def told_of(session: AsyncSession, incident: Incident) -> Literal["told", "withdrawn", "never"]:
    """Tell if people know of an incident: by its own events, or by those of the one that it was split from.

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
