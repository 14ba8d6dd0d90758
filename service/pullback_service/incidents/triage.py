"""Verdicts of people on incidents."""

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now

from pullback_service.deferring import defer_detection
from pullback_service.errors import ConflictError
from pullback_service.ids import ProjectId
from pullback_service.incidents.announcing import note_event
from pullback_service.incidents.queries import changes_of_incidents, incident_by_id, verdicts_of
from pullback_service.incidents.settling import move
from pullback_service.incidents.standing import VerdictWord, state_of
from pullback_service.models.incidents import Incident, Verdict


async def give_verdict(
    session: AsyncSession, incident_id: int, verdict: VerdictWord, *, note: str | None, link: str | None, by: str
) -> tuple[Incident, bool]:
    """Say something of an incident, and whether that is new. Index: pk_incident, ix_verdict_incident_id."""
    incident = await _open_incident(session, incident_id)
    standing = (await verdicts_of(session, [incident_id])).get(incident_id)
    if standing is not None and (standing.verdict, standing.note, standing.link) == (verdict, note, link):
        return incident, False
    session.add(Verdict(incident_id=incident_id, actor=by, verdict=verdict, note=note, link=link))
    note_event(session, incident, verdict, actor=by, details={"note": note, "link": link})
    if verdict != "real" or standing is not None:
        await _decide(session, incident, verdict, by)
    return incident, True


async def revoke_verdict(session: AsyncSession, incident_id: int, *, by: str) -> tuple[Incident, bool]:
    """Take back what was said of an incident; its state is again what the evidence says."""
    incident = await _open_incident(session, incident_id)
    of_incident = (Verdict.incident_id == incident_id, Verdict.revoked_at.is_(None))
    revoked = await session.execute(update(Verdict).where(*of_incident).values(revoked_at=now(), revoked_by=by))
    if revoked.rowcount == 0:  # type: ignore[attr-defined] # of an update
        return incident, False
    note_event(session, incident, "revoked", actor=by)
    await _decide(session, incident, None, by)
    return incident, True


async def _open_incident(session: AsyncSession, incident_id: int) -> Incident:
    incident = await incident_by_id(session, incident_id, lock=True)
    if incident.merged_into_id is not None:
        raise ConflictError(
            f"Incident {incident_id} became a part of incident {incident.merged_into_id}: decide about that one.",
            members={"merged_into": incident.merged_into_id},
        )
    return incident


async def _decide(session: AsyncSession, incident: Incident, verdict: VerdictWord | None, by: str) -> None:
    changes = (await changes_of_incidents(session, [incident.id])).get(incident.id, [])
    was = incident.state
    await move(session, incident, state_of(changes, was=was, verdict=verdict), actor=by)  # type: ignore[arg-type] # the table has no others
    await defer_detection(session, ProjectId(incident.project_id))  # which asks agents, where that is due
