"""The states of incidents, as their changes, jobs and verdicts say; what happens on the way is written down and told."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now

from pullback_service.ids import ProjectId
from pullback_service.incidents.announcing import announce, note_event, tell_what_was_kept, told_of
from pullback_service.incidents.changes import Change, Places
from pullback_service.incidents.confirming import (
    Measuring,
    chosen_to_measure,
    measuring_machines,
    queue_confirmation,
)
from pullback_service.incidents.queries import changes_of_incidents, verdicts_of
from pullback_service.incidents.standing import MOST_ASKED, State, state_of
from pullback_service.incidents.watching import Trunk
from pullback_service.models.incidents import Incident
from pullback_service.models.jobs import Job

WAITING: Final = ("suspected", "confirming")
_UNFINISHED: Final = ("queued", "leased", "running")


async def settle(session: AsyncSession, project_id: ProjectId, trunk: Trunk, touched: Collection[int]) -> None:
    """Bring the states of incidents up to date: of those that were touched, and of those that wait for a measurement.

    Index: pk_incident, ix_incident_waiting, ix_change_incident_id, ix_verdict_incident_id, pk_job.
    """
    of_project = select(Incident).where(Incident.project_id == project_id, Incident.state != "merged")
    found = (
        await session.scalars(
            of_project.where(Incident.id.in_(touched) | Incident.state.in_(WAITING))
            .order_by(Incident.id)
            .execution_options(populate_existing=True)
        )
    ).all()
    ids = [incident.id for incident in found]
    changes = await changes_of_incidents(session, ids)
    verdicts = await verdicts_of(session, ids)
    jobs = [incident.job_id for incident in found if incident.job_id is not None]
    waiting = set(await session.scalars(select(Job.id).where(Job.id.in_(jobs), Job.state.in_(_UNFINISHED))))
    machines = {change.machine_id for of_one in changes.values() for change in of_one}
    measuring = await measuring_machines(session, project_id, machines)
    for incident in found:
        verdict = verdicts.get(incident.id)
        await _settle(
            session,
            incident,
            changes.get(incident.id, []),
            trunk.places,
            measuring,
            verdict=None if verdict is None else verdict.verdict,
            is_measured_again=incident.job_id in waiting,
        )


async def _settle(
    session: AsyncSession,
    incident: Incident,
    changes: Sequence[Change],
    places: Places,
    measuring: Mapping[int, Measuring],
    *,
    verdict: str | None,
    is_measured_again: bool,
) -> None:
    chosen = [] if incident.asked >= MOST_ASKED else chosen_to_measure(changes, measuring)
    state = state_of(
        changes,
        was=incident.state,  # type: ignore[arg-type] # the table has no others
        verdict=verdict,  # type: ignore[arg-type]
        is_measured_again=is_measured_again,
        may_be_measured=bool(chosen),
    )
    if state == "suspected" and chosen:
        by = measuring[chosen[0].machine_id]
        incident.job_id = await queue_confirmation(session, ProjectId(incident.project_id), chosen, places, by)
        incident.asked += 1
        state = "confirming"
    _locate(incident, changes, places)
    await move(session, incident, state)


def _locate(incident: Incident, changes: Sequence[Change], places: Places) -> None:
    """The kind and the range that the changes have in common; one that has none left stays where it was."""
    speaking = [change for change in changes if change.standing == "claimed"] or changes
    if not speaking:
        return
    incident.kind = speaking[0].incident_kind
    incident.reference_id = max((change.reference_id for change in changes), key=places.__getitem__)
    incident.commit_id = min((change.commit_id for change in changes), key=places.__getitem__)
    ends = [change.ended_id for change in speaking if change.ended_id is not None]
    incident.ended_id = max(ends, key=places.__getitem__) if len(ends) == len(speaking) else None


async def move(session: AsyncSession, incident: Incident, state: State, *, actor: str | None = None) -> None:
    """Let an incident be in another state, write that down, and tell it where people are told of such."""
    was = incident.state
    if state == was:
        await session.flush()
        await tell_what_was_kept(session, incident)
        return
    incident.state = state
    incident.changed_at = now()
    await session.flush()
    told = await told_of(session, incident)
    if state in {"refuted", "unconfirmed", "suspected", "confirming"} and told == "told":
        await announce(session, incident, "withdrawn", actor=actor)
    elif state in {"confirmed", "likely"} and told != "told":
        await announce(session, incident, state, actor=actor)
    elif state == "resolved" and told == "told":
        await announce(session, incident, "resolved", actor=actor)
    else:
        note_event(session, incident, state, actor=actor)
