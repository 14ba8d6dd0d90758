"""Announcing incidents: every notification about an incident is made here."""

from collections.abc import Mapping
from typing import Any, Final, Literal, LiteralString, TypeAlias

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import ProjectId
from pullback_service.incidents.confirmation import can_be_measured
from pullback_service.incidents.lifecycle import GROWN
from pullback_service.incidents.payload import facts_of
from pullback_service.incidents.rule_decisions import decide_for
from pullback_service.models.incidents import Incident, IncidentEvent
from pullback_service.notifications.events import EVENTS, USUAL
from pullback_service.notifications.outbox import enqueue

Event: TypeAlias = Literal["confirmed", "likely", "grown", "resolved", "withdrawn", "culprit"]
ANNOUNCED_KINDS: Final = frozenset({"worse", "wrong_gradient", "failed", "unsteady", "missing"})
"""Kinds of incidents that are announced. Improvements are only shown on pages."""
BEGINNINGS: Final[tuple[Event, ...]] = ("confirmed", "likely")
"""Events that announce an incident first; rules decide who gets them, and later events go to the same channels."""
_OF_KINDS: Final[Mapping[str, str]] = {
    "wrong_gradient": "wrong_gradient",
    "failed": "wrong_gradient",
    "missing": "missing",
}
"""The names under which channels choose what is confirmed of some kinds."""
_OPENINGS: Final[Mapping[Event, str]] = {
    "confirmed": "", "likely": "Likely: ", "grown": "Grown: ", "resolved": "Resolved: ", "withdrawn": "Withdrawn: ",
    "culprit": "Culprit found: ",
}  # fmt: skip

# What the anchor shows of a series and what a commit did to it are parts of one change where one commit can have caused both.
_ANNOUNCED: Final[LiteralString] = """
SELECT other.id
  FROM change mine
  JOIN commit begun ON begun.id = mine.reference_id
  JOIN commit reached ON reached.id = mine.commit_id
  LEFT JOIN LATERAL (
       SELECT incident.id
         FROM change its
         JOIN incident ON incident.id = its.incident_id AND incident.state IN ('confirmed', 'likely') AND incident.kind = 'worse'
         JOIN commit older ON older.id = its.reference_id
         JOIN commit newer ON newer.id = its.commit_id
        WHERE its.project_id = mine.project_id AND its.case_id = mine.case_id AND its.machine_id = mine.machine_id
          AND its.series_id = mine.series_id AND its.incident_id <> mine.incident_id
          AND its.standing IN ('claimed', 'borne_out') AND its.ended_id IS NULL
          AND (its.evidence = 'anchor') <> (mine.evidence = 'anchor')
          AND (older.ordered_at, older.id) < (reached.ordered_at, reached.id)
          AND (begun.ordered_at, begun.id) < (newer.ordered_at, newer.id)
          AND EXISTS (SELECT FROM incident_event WHERE incident_event.incident_id = incident.id AND told)
        ORDER BY incident.id LIMIT 1) other ON true
 WHERE mine.incident_id = %(incident)s AND mine.standing IN ('claimed', 'borne_out')
"""
_REPLIES_TO: Final[LiteralString] = """
SELECT details ->> 'announced_as' FROM incident_event
 WHERE incident_id = %(incident)s AND details ->> 'announced_as' IS NOT NULL
 ORDER BY id DESC LIMIT 1
"""
_PARTS: Final[LiteralString] = """
SELECT DISTINCT incident.id
  FROM incident
  JOIN incident_event event ON event.incident_id = incident.id
   AND event.details ->> 'announced_as' IN (SELECT id::text FROM incident WHERE project_id = %(project)s AND %(incident)s IN (id, merged_into_id))
 WHERE incident.project_id = %(project)s AND incident.state IN ('confirmed', 'likely')
   AND NOT EXISTS (SELECT FROM incident_event WHERE incident_event.incident_id = incident.id AND told)
 ORDER BY incident.id
"""


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
        channels, applied = await decide_for(session, incident)
        incident.told_to = None if channels is None else sorted(channels)
        incident.rules = [each.as_json() for each in applied]
    tells = not incident.seen and incident.kind in ANNOUNCED_KINDS and incident.told_to != []
    facts: Mapping[str, Any] = {**(await facts_of(session, incident) if tells else {}), **(details or {})}
    noted = note_event(session, incident, event, actor=actor, told=tells, details=facts)
    await session.flush()
    if tells:
        name = _OF_KINDS.get(incident.kind, event) if event == "confirmed" else event
        title = _OPENINGS[event] + facts["title"]
        message = {**facts, "title": title, "severity": incident.kind}
        if (whole := await _announced_as(session, incident)) is not None:
            message["thread"] = f"incident {whole}"
        key = f"incident {incident.id}, event {noted.id}"
        project_id = ProjectId(incident.project_id)
        is_left_out = event == "likely" and incident.told_to is None and await can_be_measured(session, project_id)
        usual = USUAL if is_left_out else EVENTS  # rules that name channels name them for all events
        await enqueue(session, project_id, name, key, message, only=incident.told_to, usual=usual)


async def announce_first(session: AsyncSession, incident: Incident, event: Event, *, actor: str | None = None) -> None:
    """Announce an incident for the first time, unless others announced all of it: a drift of which a commit did a part, or the other way round.

    It is then announced as a reply, where it is twice as large.
    Index: ix_change_incident_id, pk_commit, ix_change_project_id, pk_incident, ix_incident_event_incident_id.
    """
    rows = await statements.rows(session, _ANNOUNCED, {"incident": incident.id}) if incident.kind == "worse" else []
    others = {row[0] for row in rows}
    if not others or None in others:
        await announce(session, incident, event, actor=actor)
        return
    whole = await session.get_one(Incident, min(others))
    incident.told_to, incident.rules = whole.told_to, whole.rules
    because = f"Announced with incident {whole.id}, which is about the same change."
    note_event(session, incident, event, actor=actor, details={"because": because, "announced_as": str(whole.id)})
    await session.flush()
    await announce_growth(session, incident)


async def announce_parts(session: AsyncSession, incident: Incident) -> None:
    """Announce what was announced with an incident alone, and stands now that this one is over or withdrawn.

    Index: ix_incident_project_id, ix_incident_event_incident_id; as `announce_first`.
    """
    values = {"project": incident.project_id, "incident": incident.id}
    for (part,) in await statements.rows(session, _PARTS, values):
        other = await session.get_one(Incident, part, with_for_update={"key_share": True})
        state = other.state
        if state in BEGINNINGS:
            await announce_first(session, other, state)


async def _announced_as(session: AsyncSession, incident: Incident) -> int | None:
    """The incident with which another one was announced, so that its messages are replies. Index: ix_incident_event_incident_id."""
    row = await statements.row(session, _REPLIES_TO, {"incident": incident.id})
    return None if row is None else int(row[0])


async def announce_held_back(session: AsyncSession, incident: Incident) -> None:
    """Announce an incident that rules held back when it began, if they no longer do: it grew, or the rules changed."""
    state = incident.state
    if incident.told_to == [] and not incident.seen and state in BEGINNINGS:
        decision = await decide_for(session, incident)
        incident.rules = [each.as_json() for each in decision.held]
        if decision.tells and incident.kind in ANNOUNCED_KINDS:
            await announce(session, incident, state)


async def announce_growth(session: AsyncSession, incident: Incident) -> None:
    """Announce an incident again if it reached twice its announced size in a metric, or another machine or device.

    Index: ix_incident_event_incident_id; as `facts_of`.
    """
    if incident.state not in BEGINNINGS:
        return
    told = await _last_told(session, incident.id)
    if told is None and (whole := await _announced_as(session, incident)) is not None:
        told = await _last_told(session, whole)
    if told is None or "sizes" not in told:  # not announced, or by an earlier release
        return
    facts = await facts_of(session, incident)
    if has_grown(told["sizes"], facts["sizes"]):
        await announce(session, incident, "grown")


async def _last_told(session: AsyncSession, incident_id: int) -> Mapping[str, Any] | None:
    """The details of the last announcement of an incident that had its sizes. Index: ix_incident_event_incident_id."""
    statement = (
        select(IncidentEvent.details)
        .where(
            IncidentEvent.incident_id == incident_id,
            IncidentEvent.told,
            IncidentEvent.event.in_((*BEGINNINGS, "grown")),
        )
        .order_by(IncidentEvent.id.desc())
        .limit(1)
    )
    row: Mapping[str, Any] | None = await session.scalar(statement)
    return row


def has_grown(told: Mapping[str, Mapping[str, float]], now: Mapping[str, Mapping[str, float]]) -> bool:
    """True if a machine is new, or a device of one, or a metric is twice as large as anywhere before. Sizes are by machine and metric."""
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
