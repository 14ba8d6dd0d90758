"""`/projects/{project}/incidents/{id}`: an incident with its evidence."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.case.sources import case_at
from pullback_dashboards.forms import SEE_OTHER, Form, checked
from pullback_dashboards.incident.event_text import lines_of
from pullback_dashboards.incident.evidence import ChangeRow, charts_of, drawn_series, objections_of, rows_of
from pullback_dashboards.incident.view import (
    CaseDifferences,
    IncidentView,
    bisected_of,
    can_bisect,
    can_measure,
    differing_of,
    message_of,
    ranges_of,
    rules_of,
)
from pullback_dashboards.incidents.triage import ANSWERS, incident_of, triage_for, verdict_of
from pullback_dashboards.incidents.view import line_of
from pullback_dashboards.projection_notice import note_unprojected
from pullback_dashboards.rendering import add_formats, csv_response, page
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_dashboards.wording import factors
from pullback_service import statements
from pullback_service.access.authentication import KnownCaller
from pullback_service.endpoints import incidents as endpoints
from pullback_service.errors import GoneError, NotFoundError
from pullback_service.fields import KnownId
from pullback_service.ids import ProjectId
from pullback_service.incidents.commands import reproduce_command
from pullback_service.incidents.evidence import measured_in_turns, messages_about, observations, unmoved
from pullback_service.incidents.queries import (
    NamedChange,
    bisection_of,
    detail_asked,
    events_of,
    incident_by_id,
)
from pullback_service.incidents.schemas import AssigneeRequest
from pullback_service.incidents.sentences import lead_of
from pullback_service.projects.queries import project_by_name
from pullback_service.reports.case_reports import CasePlace, case_called, reports_of_case
from pullback_service.series.queries import is_measured_here
from pullback_service.sessions import ReadSession, WriteSession
from pullback_service.statements import QueryBatch

router = page_router(note_unprojected, route_class=RawNamesRoute)

MOST_MESSAGES = 20
COLUMNS = (
    "case", "variant", "metric", "machine", "reference", "commit", "kind", "evidence", "standing", "unit", "before", "after", "factor",
    "low", "high", "groups", "message",
)  # fmt: skip


async def _read(project: str, incident_id: KnownId, session: ReadSession, caller: KnownCaller) -> IncidentView:
    known = await project_by_name(session, project)
    async with statements.together(session) as ask:
        details, events = detail_asked(ask, incident_id), ask(events_of(incident_id))
        is_ours, bisection = ask(is_measured_here(ProjectId(known.id))), ask(bisection_of(incident_id))
    detail = details()
    incident = incident_of(known, detail.incident)
    cases = {each.change.case_id for each in detail.changes}
    drawn = [each.change.series_id for each in drawn_series(detail) if each.change.series_id is not None]
    async with statements.together(session) as ask:
        observed = ask(observations(incident, drawn))
        compared = ask(measured_in_turns(incident, cases, ranges_of(detail)))
        others = ask(unmoved(incident, detail.changes))
        lead = lead_of(detail) if detail.changes else None
        of_lead = None if lead is None else _lead_asked(ask, ProjectId(known.id), lead)
        sent = ask(messages_about(incident, most=MOST_MESSAGES)) if caller.has("admin") else None
    rows, against = (
        rows_of(project, detail.changes, compared.value),
        objections_of(detail, compared.value, others.value),
    )
    ended, into, job = detail.ended, incident.merged_into_id, incident.job_id
    return IncidentView(
        project=project,
        line=line_of(detail),
        reference=detail.reference.sha,
        reference_href=links.commit(project, detail.reference.sha),
        compare_href=links.compare(project, base=detail.reference.sha, head=detail.commit.sha),
        ended=ended.sha if ended else None,
        ended_href=links.commit(project, ended.sha) if ended else None,
        merged_into=into,
        merged_href=None if into is None else links.incident(project, into),
        job=job,
        job_href=None if job is None else links.job(job),
        triage=triage_for(caller),
        is_cause_enough=(incident.state, incident.cause, incident.asked) == ("unconfirmed", "machine", 0)
        and incident.ended_id is None
        and incident.out_of_time_on is None,
        is_out_of_time=(incident.state, incident.asked) == ("unconfirmed", 0) and incident.out_of_time_on is not None,
        can_measure=can_measure(detail),
        can_bisect=can_bisect(detail),
        seen=incident.seen,
        rules=rules_of(detail),
        charts=charts_of(project, detail, observed.value),
        changes=rows,
        left_out=len(detail.changes) - len(rows),
        against=against,
        differing=None
        if lead is None or of_lead is None
        else await _differing(session, project, ProjectId(known.id), of_lead(), lead),
        events=lines_of(project, events.value),
        bisection=bisected_of(project, bisection.value),
        messages=None if sent is None else tuple(map(message_of, sent.value)),
        reproduce=reproduce_command(detail) if is_ours.value else None,
        verdict_command=f"pullback incident verdict {incident.id} expected --note 'Why it is.'",
    )


def _lead_asked(ask: QueryBatch, project_id: ProjectId, lead: NamedChange) -> Callable[[], CasePlace | None]:
    """The case that speaks for all at its commit, where that has a report. Index: as `case_called` and `place_of_case`."""
    case = ask(case_called(project_id, lead.case))
    reports = ask(reports_of_case(project_id, lead.change.case_id, lead.commit.id, None, machine=lead.machine))

    def read() -> CasePlace | None:
        found = reports.value
        return CasePlace(case.value, found[0], found.get(1), found.get(2)) if 0 in found else None

    return read


async def _differing(
    session: AsyncSession, project: str, project_id: ProjectId, place: CasePlace | None, lead: NamedChange
) -> CaseDifferences | None:
    """Differences in the case that speaks for all, as far as files still tell."""
    if place is None:
        return None
    try:
        result = await case_at(session, project_id, project, place, machine=lead.machine)
    except (NotFoundError, GoneError):
        return None
    return differing_of(result, lead.change.variant or "")


RequestedView = Annotated[IncidentView, Depends(_read)]
_PATH = "/projects/{project:path}/incidents/{incident_id}"


add_formats(
    router,
    _PATH,
    RequestedView,
    csv=lambda view: csv_response(f"{view.project}-incident-{view.line.id}", map(_columns_of, view.changes), COLUMNS),
)


@router.post(_PATH + "/verdict")
async def judge_incident(
    request: Request, project: str, incident_id: KnownId, session: WriteSession, caller: KnownCaller
) -> Response:
    """Record or revoke a verdict on an incident, and show it again."""
    await _known(session, project, incident_id)
    verdict = verdict_of(await Form.of(request))
    if verdict is None:
        await endpoints.revoke_verdict(session, caller, incident_id)
    else:
        await endpoints.give_verdict(verdict, session, caller, incident_id)
    return _back(project, incident_id)


@router.post(_PATH + "/assignee")
async def assign_incident(
    request: Request, project: str, incident_id: KnownId, session: WriteSession, caller: KnownCaller
) -> Response:
    """Set or clear the assignee of an incident, and show it again."""
    await _known(session, project, incident_id)
    form = await Form.of(request)
    form.needs("assignee")
    requested = checked(AssigneeRequest, {"assignee": form.text("assignee") or None})
    await endpoints.assign_incident(requested, session, caller, incident_id)
    return _back(project, incident_id)


@router.post(_PATH + "/confirm")
async def confirm_incident(project: str, incident_id: KnownId, session: WriteSession, caller: KnownCaller) -> Response:
    """Have an incident measured again, and show it."""
    await _known(session, project, incident_id)
    await endpoints.confirm_incident(session, caller, incident_id)
    return _back(project, incident_id)


@router.post(_PATH + "/bisect")
async def bisect_incident(project: str, incident_id: KnownId, session: WriteSession, caller: KnownCaller) -> Response:
    """Have the commit of an incident searched for, and show it again."""
    await _known(session, project, incident_id)
    await endpoints.bisect_incident(session, caller, incident_id)
    return _back(project, incident_id)


async def _known(session: AsyncSession, project: str, incident_id: int) -> None:
    incident_of(await project_by_name(session, project), await incident_by_id(session, incident_id))


def _back(project: str, incident_id: int) -> Response:
    return RedirectResponse(links.incident(project, incident_id), status_code=SEE_OTHER)


@router.get(_PATH)
@router.get(_PATH + ".md")
async def incident_page(request: Request, view: RequestedView) -> Response:
    """The page."""
    return page(
        request,
        "incident.html",
        title=f"Incident {view.line.id}",
        project=view.project,
        view=view,
        against_baseline=None,
        formats=("json", "csv", "md"),
        answers=ANSWERS,
        scripts=("copy.js", *(["triage.js"] if view.triage.may else [])),
    )


def _columns_of(row: ChangeRow) -> Mapping[str, Any]:
    """The row as numbers."""
    return asdict(row) | factors.columns_of(row)
