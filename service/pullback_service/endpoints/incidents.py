"""Listing incidents, reading them, and deciding about them."""

from typing import Annotated

from fastapi import Depends, Query, Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.access.authentication import KnownCaller
from pullback_service.addresses import API
from pullback_service.audit.trail import note
from pullback_service.endpoints.tables import INCIDENTS
from pullback_service.errors import ConflictError, InvalidInputError, NotFoundError
from pullback_service.fields import KnownId, Name, Time
from pullback_service.ids import ProjectId
from pullback_service.incidents import queries, triage
from pullback_service.incidents.accuracy import judged_incidents, noticed_steps
from pullback_service.incidents.queries import IncidentChoice
from pullback_service.incidents.schemas import (
    Accuracy,
    AssigneeRequest,
    IncidentDetail,
    IncidentKind,
    IncidentState,
    IncidentSummary,
    VerdictRequest,
)
from pullback_service.listing import LISTED, KnownListing
from pullback_service.models.incidents import Incident
from pullback_service.paging import Page, page_of, read_cursor
from pullback_service.problems import documented
from pullback_service.projects.queries import project_by_name
from pullback_service.routers import api_router
from pullback_service.sessions import ReadSession, WriteSession

router = api_router(prefix=f"{API}/incidents", tags=["incidents"])

Place = TypeAdapter(tuple[KnownId])


async def _chosen(
    project: Name | None = None,
    state: Annotated[list[IncidentState] | None, Query(description="Any of these.", max_length=8)] = None,
    kind: IncidentKind | None = None,
    since: Annotated[Time | None, Query(description="Only those that were found then or later.")] = None,
    assignee: Annotated[Name | None, Query(description="Only those assigned to this person.")] = None,
    workload: Annotated[Name | None, Query(description="Only those that changed a case of this workload.")] = None,
    case: Annotated[Name | None, Query(description="Only those that changed this case, by its label.")] = None,
    variant: Annotated[Name | None, Query(description="Only those that changed this variant.")] = None,
    machine: Annotated[Name | None, Query(description="Only those that were seen on this machine.")] = None,
) -> IncidentChoice:
    return IncidentChoice(
        project,
        tuple(state or ()),
        kind,
        since,
        assignee,
        workload=workload,
        case=case,
        variant=variant,
        machine=machine,
    )


ChosenIncidents = Annotated[IncidentChoice, Depends(_chosen)]


@router.get("", response_model=Page[IncidentSummary], responses={**LISTED, **documented(NotFoundError)})
async def list_incidents(listing: KnownListing, chosen: ChosenIncidents) -> Response:
    """List incidents, newest first. Improvements are of the kind `better`."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[IncidentSummary]:
        place = read_cursor(cursor, Place)
        if chosen.project is not None:
            await project_by_name(session, chosen.project)
        rows = await queries.list_incidents(session, chosen, before_id=place[0] if place else None, limit=limit + 1)
        return page_of(rows, limit, item=IncidentSummary.of, key=lambda row: (row.incident.id,))

    return await listing.give(read, INCIDENTS, name=chosen.project)


@router.get("/accuracy", responses=documented(NotFoundError))
async def read_accuracy(session: ReadSession, project: Name) -> Accuracy:
    """The share of a project's incidents that people called right, and how small a step would be noticed."""
    project_id = ProjectId((await project_by_name(session, project)).id)
    async with statements.together(session) as ask:
        judged, noticed = ask(judged_incidents(project_id)), ask(noticed_steps(project_id))
    return Accuracy.of(project, judged.value, noticed.value)


@router.get("/{incident_id}", responses=documented(NotFoundError))
async def read_incident(session: ReadSession, incident_id: KnownId) -> IncidentDetail:
    """An incident with all its changes, what happened to it, and what people said."""
    return await _whole(session, await queries.incident_by_id(session, incident_id))


@router.post("/{incident_id}/verdict", responses=documented(NotFoundError, ConflictError, InvalidInputError))
async def give_verdict(
    verdict: VerdictRequest, session: WriteSession, caller: KnownCaller, incident_id: KnownId
) -> IncidentDetail:
    """Record a verdict on an incident. One that became a part of another is a conflict that names the other."""
    incident, is_new = await triage.give_verdict(
        session, incident_id, verdict.verdict, note=verdict.note, link=verdict.link, by=caller.name
    )
    return await _decided(session, incident, is_new=is_new, verdict=verdict.verdict)


@router.delete("/{incident_id}/verdict", responses=documented(NotFoundError, ConflictError))
async def revoke_verdict(session: WriteSession, caller: KnownCaller, incident_id: KnownId) -> IncidentDetail:
    """Revoke the verdict of an incident; its state follows the evidence again."""
    incident, is_new = await triage.revoke_verdict(session, incident_id, by=caller.name)
    return await _decided(session, incident, is_new=is_new, verdict=None)


@router.put("/{incident_id}/assignee", responses=documented(NotFoundError, ConflictError, InvalidInputError))
async def assign_incident(
    request: AssigneeRequest, session: WriteSession, caller: KnownCaller, incident_id: KnownId
) -> IncidentDetail:
    """Assign an incident to a person, or remove the assignee."""
    incident, is_new = await triage.assign(session, incident_id, request.assignee, by=caller.name)
    return await _decided(session, incident, is_new=is_new, assignee=request.assignee)


@router.post("/{incident_id}/confirm", responses=documented(NotFoundError, ConflictError))
async def confirm_incident(session: WriteSession, caller: KnownCaller, incident_id: KnownId) -> IncidentDetail:
    """Have both ends of an incident measured again in turns, now: `job_id` is the job. One that waits or runs already stays as it is.

    A conflict where no agent can measure it.
    """
    incident, is_new = await triage.confirm(session, incident_id, by=caller.name)
    return await _decided(session, incident, is_new=is_new, job=incident.job_id)


@router.post("/{incident_id}/bisect", responses=documented(NotFoundError, ConflictError))
async def bisect_incident(session: WriteSession, caller: KnownCaller, incident_id: KnownId) -> IncidentDetail:
    """Search for the commit that caused a confirmed incident: jobs of the origin `bisect`, one after the other.

    A search that goes on stays as it is; a finished one is started again, with the stored results. A conflict where
    the range is one commit, where
    the incident is not confirmed, or where no agent can measure it.
    """
    incident, is_new = await triage.bisect(session, incident_id, by=caller.name)
    return await _decided(session, incident, is_new=is_new)


async def _decided(session: AsyncSession, incident: Incident, *, is_new: bool, **details: object) -> IncidentDetail:
    whole = await _whole(session, incident)
    note(session, changed=is_new, subject=f"incident {incident.id}", project=whole.project, **details)
    return whole


async def _whole(session: AsyncSession, incident: Incident) -> IncidentDetail:
    await session.flush()
    await session.refresh(incident)
    async with statements.together(session) as ask:
        details, events = queries.details_asked(ask, [incident]), ask(queries.events_of(incident.id))
    (detail,) = details()
    return IncidentDetail.whole(
        detail,
        events=[*events.value],
        verdicts=[*await queries.every_verdict(session, incident.id)],
        bisection=await statements.answer(session, queries.bisection_of(incident.id)),
    )
