"""`/projects/{project}/commits/{sha}/cases/{case}`: one case at one commit, and what changed since the one that it followed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from pullback_dashboards import links
from pullback_dashboards.case.sources import case_at
from pullback_dashboards.case.view import CaseView
from pullback_dashboards.history import short_of
from pullback_dashboards.projection_notice import note_unprojected
from pullback_dashboards.rendering import csv_response, page, page_at
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_service import statements
from pullback_service.commits.ref_names import CommitName, named_commits
from pullback_service.errors import GoneError, NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.projects.queries import project_by_name
from pullback_service.reports.case_reports import CaseReport, case_called, place_of_case
from pullback_service.sessions import ReadSession

router = page_router(note_unprojected, route_class=RawNamesRoute)

COLUMNS = ("commit", "machine", "case", "variant", "group", "seconds", "baseline_seconds", "factor")


@dataclass(frozen=True)
class State:
    """The state of the page that its address holds besides the path."""

    machine: str | None = None


async def _read(
    project: str, sha: str, case: str, session: ReadSession, state: Annotated[State, Depends()]
) -> CaseView:
    project_id = ProjectId((await project_by_name(session, project)).id)
    async with statements.together(session) as ask:
        named = ask(named_commits(project_id, [CommitName(sha, "commit")]))
        known = ask(case_called(project_id, case))
    commit = named.value[0].commit
    refused: list[tuple[CaseReport, GoneError]] = []
    while True:
        try:
            without = [report.report_id for report, _ in refused]
            place = await place_of_case(
                session, project_id, known.value, commit, machine=state.machine, without=without
            )
        except NotFoundError:
            if refused:  # none of the reports that speak of it can be read: why the first cannot
                raise refused[0][1] from None
            raise
        try:
            return await case_at(session, project_id, project, place, machine=state.machine, with_irregularities=True)
        except GoneError as error:
            refused.append((place.here, error))


RequestedView = Annotated[CaseView, Depends(_read)]
_PATH = "/projects/{project:path}/commits/{sha}/cases/{case:path}"


@page_at(
    router,
    _PATH,
    RequestedView,
    csv=lambda view: csv_response(f"{view.workload}-{view.commit.short}", _table(view), COLUMNS),
    also=(links.PAGE,),
)
async def case_page(request: Request, view: RequestedView) -> Response:
    """The page."""
    return page(
        request,
        "case.html",
        title=f"{view.case} at {short_of(view.commit.sha)}",
        project=view.project,
        view=view,
        formats=("json", "csv", "md"),
        scripts=("copy.js",),
        against_baseline=view.compares,
        baseline=view.baseline,
    )


def _table(view: CaseView) -> Iterator[dict[str, Any]]:
    """One row for each group of each variant; the baseline stands beside it."""
    base = next((block.samples for block in view.variants if block.variant == view.baseline), ())
    for block in view.variants:
        for number, seconds in enumerate(block.samples):
            reference = base[number] if len(base) == len(block.samples) else None
            yield {
                "commit": view.commit.sha,
                "machine": view.machine,
                "case": view.case,
                "variant": block.variant,
                "group": number + 1,
                "seconds": seconds,
                "baseline_seconds": reference,
                "factor": f"{seconds / reference:.6g}" if reference else None,
            }
