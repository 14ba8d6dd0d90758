"""`/projects/{project}/commits/{sha}/cases/{case}`: one case at one commit, and what changed since the one that it followed."""

from asyncio import create_task, gather
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links, sources
from pullback_dashboards.case.view import CaseView, Step, Told, case_view
from pullback_dashboards.history import Claim, Commit, short_of
from pullback_dashboards.rendering import csv_twin, json_twin, page
from pullback_dashboards.routing import WholeNames
from pullback_service.commits.naming import named_commit
from pullback_service.comparisons.queries import Compared
from pullback_service.errors import GoneError, Missing, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.models import commits
from pullback_service.models.series import Case
from pullback_service.projects.queries import project_by_name
from pullback_service.reports.cases import CasePlace, CaseReport, place_of_case
from pullback_service.reports.queries import StoredReport, read_files, reports_by_id
from pullback_service.reports.stored_files import case_of
from pullback_service.sessions import ReadSession
from pullback_service.steps.queries import news_at, steps_of_case

router = APIRouter(route_class=WholeNames, include_in_schema=False)

COLUMNS = ("commit", "machine", "case", "variant", "group", "seconds", "baseline_seconds", "factor")


@dataclass(frozen=True)
class State:
    """The state of the page that its address holds besides the path."""

    machine: str | None = None


async def _read(
    project: str, sha: str, case: str, session: ReadSession, state: Annotated[State, Depends()]
) -> CaseView:
    known = await project_by_name(session, project)
    project_id = ProjectId(known.id)
    commit = (await named_commit(session, project_id, sha, where="commit")).commit
    refused: list[tuple[CaseReport, GoneError]] = []
    while True:
        try:
            place = await place_of_case(
                session,
                project_id,
                case,
                commit,
                machine=state.machine,
                without=[report.report_id for report, _ in refused],
            )
        except NotFoundError:
            if refused:  # none of the reports that speak of it can be read: why the first cannot
                raise refused[0][1] from None
            raise
        asked = [place.here, *([place.before] if place.before is not None else [])]
        found = await reports_by_id(session, [report.report_id for report in asked])
        await read_files(session, found.values())
        stored, earlier = (found.get(report.report_id) if report else None for report in (place.here, place.before))
        if stored is None:  # removed with its project meanwhile
            raise NotFoundError(f"There is no report of {case!r} any more.", missing=Missing("case", case))
        try:
            return await _view(session, project, commit, place, stored, earlier, state)
        except GoneError as error:
            refused.append((place.here, error))


async def _view(
    session: AsyncSession,
    project: str,
    commit: commits.Commit,
    place: CasePlace,
    stored: StoredReport,
    earlier: StoredReport | None,
    state: State,
) -> CaseView:
    """The case as a report tells it, beside what one of the commit before told."""
    # Most of the time of this page is unpacking two files, which two threads do while the database is asked.
    unpacking = create_task(_both(stored, earlier, place.case))
    try:
        judged, claims = await _judged(session, place, commit)
        now, before = await unpacking
    finally:
        unpacking.cancel()
    return case_view(
        now,
        before,
        judged,
        project=project,
        case=place.case.label,
        commit=_named(commit),
        machine=place.here.machine.name,
        report_id=str(stored.report.id),
        steps=(
            _step(project, place.case.label, place.before, state),
            _step(project, place.case.label, place.after, state),
        ),
        claims=claims,
    )


async def _judged(
    session: AsyncSession, place: CasePlace, commit: commits.Commit
) -> tuple[Mapping[tuple[str, str], Compared], Sequence[Claim]]:
    """The judgements of every series of the case since the commit before, and where uploads compare this one."""
    machine_id = MachineId(place.here.machine.id)
    series = (
        await steps_of_case(session, place.case.id, machine_id, commit.id, place.before.commit.id)
        if place.before is not None
        else ()
    )
    news = await news_at(session, machine_id, [commit.id], case_id=place.case.id)
    return (
        {one.key[2:]: one for one in series},
        [sources.claim_of(one, place=0) for one in news if one.is_claim],
    )


async def _both(stored: StoredReport, earlier: StoredReport | None, case: Case) -> tuple[Told, Told | None]:
    return await gather(_told(stored, case), _told_before(earlier, case))


AskedView = Annotated[CaseView, Depends(_read)]
_PATH = "/projects/{project:path}/commits/{sha}/cases/{case:path}"


@router.get(_PATH + ".json")
async def case_json(view: AskedView) -> Response:
    """The same as JSON."""
    return json_twin(view)


@router.get(_PATH + ".csv")
async def case_csv(view: AskedView) -> Response:
    """Every group of every variant as CSV."""
    return csv_twin(f"{view.workload}-{view.commit.short}", _table(view), COLUMNS)


@router.get(_PATH)
@router.get(_PATH + links.PAGE)
@router.get(_PATH + ".md")
async def case_page(request: Request, view: AskedView) -> Response:
    """The page."""
    return page(
        request,
        "case.html",
        title=f"{view.case} at {short_of(view.commit.sha)}",
        project=view.project,
        view=view,
        twins=("json", "csv", "md"),
        scripts=("copy.js",),
        against_baseline=view.compares,
        baseline=view.baseline,
    )


async def _told(stored: StoredReport, case: Case) -> Told:
    found = await to_thread.run_sync(case_of, stored.report, case.identity)
    if found is None:
        raise NotFoundError(
            f"The file of report {stored.report.id} has no case {case.label!r}.", missing=Missing("case", case.label)
        )
    return Told(*found)


async def _told_before(stored: StoredReport | None, case: Case) -> Told | None:
    """The report of the commit before; None where its file was dropped, for that does not take this one's page away."""
    try:
        return await _told(stored, case) if stored is not None else None
    except GoneError:
        return None


def _step(project: str, case: str, neighbour: CaseReport | None, state: State) -> Step | None:
    if neighbour is None:
        return None
    return Step(_named(neighbour.commit), links.case(project, neighbour.commit.sha, case, machine=state.machine))


def _named(commit: commits.Commit) -> Commit:
    return Commit(commit.sha, commit.title, commit.author, commit.authored_at, commit.branch)


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
