"""Telling people: the one place through which whatever is told of an incident goes."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.incidents.facts import facts_of
from pullback_service.models.incidents import Incident, IncidentEvent

Event: TypeAlias = Literal["confirmed", "likely", "resolved", "withdrawn"]
TOLD_OF: Final = frozenset({"worse", "wrong_gradient", "failed", "unsteady"})
"""Kinds of incidents that people are told of. Improvements are shown."""


async def announce(session: AsyncSession, incident: Incident, event: Event, *, actor: str | None = None) -> None:
    """Write down what happened to an incident, and tell it, once, in the transaction in which it happens.

    Nobody is told of improvements, nor of what was found in results that are older than detection.
    """
    tells = not incident.seen and incident.kind in TOLD_OF
    facts: Mapping[str, Any] = await facts_of(session, incident) if tells else {}
    note_event(session, incident, event, actor=actor, told=tells, details=facts)
    await session.flush()


def note_event(
    session: AsyncSession,
    incident: Incident,
    event: str,
    *,
    actor: str | None = None,
    told: bool = False,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write down what happened to an incident."""
    session.add(
        IncidentEvent(incident_id=incident.id, event=event, actor=actor, told=told, details=dict(details or {}))
    )


async def told_of(session: AsyncSession, incident: Incident) -> Literal["told", "withdrawn", "never"]:
    """Whether people know of an incident: by its own events, or by those of the one that it was split from.

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
