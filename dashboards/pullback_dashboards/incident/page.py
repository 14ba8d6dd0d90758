"""`/projects/{project}/incidents/{id}`: an incident with its evidence."""

from typing import Annotated

from fastapi import Depends, Request, Response

from pullback_dashboards import links
from pullback_dashboards.incident.view import IncidentView, lines_of, reproduce_command, rows_of, rules_of
from pullback_dashboards.incidents.view import line_of
from pullback_dashboards.rendering import json_twin, page
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import WholeNames
from pullback_dashboards.unprojected import note_unprojected
from pullback_service import statements
from pullback_service.errors import Missing, NotFoundError
from pullback_service.fields import KnownId
from pullback_service.ids import ProjectId
from pullback_service.incidents.queries import details_asked, details_given, events_of, incident_by_id
from pullback_service.projects.queries import project_by_name
from pullback_service.series.queries import is_measured_here
from pullback_service.sessions import ReadSession

router = page_router(note_unprojected, route_class=WholeNames)


async def _read(project: str, incident_id: KnownId, session: ReadSession) -> IncidentView:
    known = await project_by_name(session, project)
    incident = await incident_by_id(session, incident_id)
    if incident.project_id != known.id:
        raise NotFoundError(
            f"Project {project!r} has no incident {incident_id}.", missing=Missing("incident", str(incident_id))
        )
    async with statements.together(session, **details_given([incident])) as ask:
        details, events = details_asked(ask, [incident]), ask(events_of(incident.id))
        is_ours = ask(is_measured_here(ProjectId(known.id)))
    (detail,) = details()
    rows = rows_of(project, detail.changes)
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
        assignee=incident.assignee,
        seen=incident.seen,
        rules=rules_of(detail),
        changes=rows,
        left_out=len(detail.changes) - len(rows),
        events=lines_of(project, events.value),
        reproduce=reproduce_command(detail) if is_ours.value else None,
        verdict_command=f"pullback incident verdict {incident.id} expected --note 'Why it is.'",
    )


AskedView = Annotated[IncidentView, Depends(_read)]
_PATH = "/projects/{project:path}/incidents/{incident_id}"


@router.get(_PATH + ".json")
async def incident_json(view: AskedView) -> Response:
    """The same as JSON; /api/v1/incidents/{id} has all changes."""
    return json_twin(view)


@router.get(_PATH)
@router.get(_PATH + ".md")
async def incident_page(request: Request, view: AskedView) -> Response:
    """The page."""
    return page(
        request,
        "incident.html",
        title=f"Incident {view.line.id}",
        project=view.project,
        view=view,
        against_baseline=None,
        twins=("json", "md"),
        scripts=("copy.js",),
    )
