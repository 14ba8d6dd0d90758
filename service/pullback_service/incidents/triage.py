"""Decisions of people about incidents: verdicts, assignees, and measurements on request."""

from collections.abc import Mapping, Sequence
from math import inf

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now

from pullback_service.deferred_chores import defer_detection
from pullback_service.errors import ConflictError
from pullback_service.ids import ProjectId
from pullback_service.incidents.announcements import note_event
from pullback_service.incidents.bisection_jobs import begin, commits_between, go_on, leading
from pullback_service.incidents.changes import Change, Places
from pullback_service.incidents.confirmation import (
    Budget,
    MeasurementMethod,
    chosen_to_measure,
    measuring_pairs,
    queue_confirmation,
    shown_most,
)
from pullback_service.incidents.detection_inputs import Pair, read_trunk
from pullback_service.incidents.lifecycle import VerdictWord
from pullback_service.incidents.queries import changes_of_incidents, incident_by_id, verdicts_of
from pullback_service.incidents.transitions import decide
from pullback_service.jobs.queries import UNFINISHED
from pullback_service.models.incidents import Bisection, Incident, Verdict
from pullback_service.models.jobs import Job


async def give_verdict(
    session: AsyncSession, incident_id: int, verdict: VerdictWord, *, note: str | None, link: str | None, by: str
) -> tuple[Incident, bool]:
    """Give a verdict on an incident; true if it is a new one. Index: pk_incident, ix_verdict_incident_id."""
    incident = await _open_incident(session, incident_id)
    current = (await verdicts_of(session, [incident_id])).get(incident_id)
    if current is not None and (current.verdict, current.note, current.link) == (verdict, note, link):
        return incident, False
    session.add(Verdict(incident_id=incident_id, actor=by, verdict=verdict, note=note, link=link))
    note_event(session, incident, verdict, actor=by, details={"note": note, "link": link})
    if verdict != "real" or current is not None:
        await _decide(session, incident, by)
    return incident, True


async def revoke_verdict(session: AsyncSession, incident_id: int, *, by: str) -> tuple[Incident, bool]:
    """Revoke the verdict on an incident; its state follows from the evidence again."""
    incident = await _open_incident(session, incident_id)
    of_incident = (Verdict.incident_id == incident_id, Verdict.revoked_at.is_(None))
    revoked = await session.execute(update(Verdict).where(*of_incident).values(revoked_at=now(), revoked_by=by))
    if revoked.rowcount == 0:  # type: ignore[attr-defined] # of an update
        return incident, False
    note_event(session, incident, "revoked", actor=by)
    await _decide(session, incident, by)
    return incident, True


async def assign(session: AsyncSession, incident_id: int, assignee: str | None, *, by: str) -> tuple[Incident, bool]:
    """Assign an incident to a person, None for nobody; true if that is a change. Index: pk_incident."""
    incident = await _open_incident(session, incident_id)
    if incident.assignee == assignee:
        return incident, False
    incident.assignee = assignee
    note_event(session, incident, "assigned", actor=by, details={"to": assignee})
    return incident, True


async def confirm(session: AsyncSession, incident_id: int, *, by: str) -> tuple[Incident, bool]:
    """Have an incident measured again now, even if it was measured before; false if such a job waits or runs already.

    Measurements on request do not count against the minutes of the day. Index: pk_incident, pk_job; as `measuring_pairs`.
    """
    incident = await _open_incident(session, incident_id)
    if await _unfinished(session, incident.job_id):
        return incident, False
    changes, places, measuring = await _measurable(session, incident)
    chosen = chosen_to_measure(changes, measuring) or shown_most(changes, measuring)
    if not chosen:
        raise ConflictError(
            f"Incident {incident_id} cannot be measured in turns: this requires a change of a metric, and an agent seen in the last "
            "24 hours on a machine that ran a job of this project, on the same device."
        )
    incident.asked, incident.out_of_time_on = 0, None
    await queue_confirmation(session, incident, chosen, places, measuring[chosen[0].pair], asked_by=by)
    note_event(session, incident, "measured_again", actor=by, details={"job": incident.job_id})
    await _decide(session, incident, by)
    return incident, True


async def bisect(session: AsyncSession, incident_id: int, *, by: str) -> tuple[Incident, bool]:
    """Bisect a confirmed incident, again if its commit was found before; false if a bisection is running.

    Index: pk_incident, pk_bisection; as `measuring_pairs`.
    """
    incident = await _open_incident(session, incident_id)
    bisection = await session.get(Bisection, incident_id)
    if bisection is not None and bisection.state == "running":
        return incident, False
    if incident.state != "confirmed":
        raise ConflictError(
            f"Incident {incident_id} is {incident.state}: only confirmed ones are bisected; have it measured with "
            f"POST /api/v1/incidents/{incident_id}/confirm."
        )
    changes, places, measuring = await _measurable(session, incident)
    if commits_between(incident, places) < 2:
        raise ConflictError(f"Incident {incident_id} begins at one commit: there is nothing to bisect.")
    lead = leading(changes, measuring, places)
    if lead is None:
        raise ConflictError(
            f"No agent can bisect incident {incident_id}: this requires one seen in the last 24 hours on a machine that showed it and ran "
            "a job of this project."
        )
    begun = await begin(session, incident, lead, asked_by=by)
    await go_on(session, incident, begun, changes, places, measuring, Budget({}, inf))
    await session.flush()
    return incident, True


async def _unfinished(session: AsyncSession, job_id: int | None) -> bool:
    waiting = select(Job.id).where(Job.id == job_id, Job.state.in_(UNFINISHED))
    return job_id is not None and await session.scalar(waiting) is not None


async def _measurable(
    session: AsyncSession, incident: Incident
) -> tuple[Sequence[Change], Places, Mapping[Pair, MeasurementMethod]]:
    """The changes of an incident between commits of the trunk, the trunk, and those of its cases that agents can measure."""
    project_id = ProjectId(incident.project_id)
    trunk = await read_trunk(session, project_id)
    places: Places = {} if trunk is None else trunk.places
    known = (await changes_of_incidents(session, [incident.id])).get(incident.id, [])
    changes = [change for change in known if change.reference_id in places and change.commit_id in places]
    return changes, places, await measuring_pairs(session, project_id, {change.pair for change in changes})


async def _open_incident(session: AsyncSession, incident_id: int) -> Incident:
    incident = await incident_by_id(session, incident_id, lock=True)
    if incident.merged_into_id is not None:
        raise ConflictError(
            f"Incident {incident_id} became a part of incident {incident.merged_into_id}: decide about that one.",
            members={"merged_into": incident.merged_into_id},
        )
    return incident


async def _decide(session: AsyncSession, incident: Incident, by: str) -> None:
    await decide(session, incident, by=by)
    await defer_detection(session, ProjectId(incident.project_id))  # which asks agents, where that is due
