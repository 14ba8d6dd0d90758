"""`/projects/{project}/commits/{sha}/cases/{case}`: one case at one commit, and what changed since the one that it followed."""

from asyncio import gather
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from anyio import to_thread
from fastapi import Depends, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links, sources
from pullback_dashboards.case.view import CaseView, Step, Told, case_view
from pullback_dashboards.history import Commit, short_of
from pullback_dashboards.rendering import csv_twin, json_twin, page
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import WholeNames
from pullback_dashboards.unprojected import note_unprojected
from pullback_service import statements
from pullback_service.commits.naming import CommitName, named_commits
from pullback_service.errors import GoneError, Missing, NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.models.reports import Report
from pullback_service.projects.queries import project_by_name
from pullback_service.reports.cases import CasePlace, CaseReport, StoredCase, case_called, place_of_case
from pullback_service.reports.queries import file_parts
from pullback_service.reports.stored_files import case_of, case_of_parts
from pullback_service.series.queries import CommitFacts
from pullback_service.sessions import ReadSession
from pullback_service.steps.queries import news_at, steps_of_case

router = page_router(note_unprojected, route_class=WholeNames)

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
            return await _view(session, project, place, state)
        except GoneError as error:
            refused.append((place.here, error))


async def _view(session: AsyncSession, project: str, place: CasePlace, state: State) -> CaseView:
    """The case as a report tells it, beside what one of the commit before told."""
    here, earlier = place.here, place.before
    asked = [*_parts(here, place.case), *(_parts(earlier, place.case) if earlier is not None else [])]
    async with statements.together(session) as ask:
        parts = ask(file_parts(asked))
        news = ask(news_at(here.machine_id, [here.commit.id], case_id=place.case.id))
        series = ask(steps_of_case(place.case.id, here.machine_id, here.commit.id, earlier.commit.id if earlier else 0))
    of_here = [part for (report_id, _), part in zip(asked, parts.value, strict=True) if report_id == here.report_id]
    # Much of the time of this page is unpacking two files, which two threads do.
    now, before = await gather(
        _told(here, of_here, place.case), _told_before(earlier, parts.value[len(of_here) :], place.case)
    )
    return case_view(
        now,
        before,
        {one.key[2:]: one for one in series.value} if earlier else {},
        project=project,
        case=place.case.label,
        commit=_named(here.commit),
        machine=here.machine,
        report_id=str(here.report_id),
        steps=(
            _step(project, place.case.label, earlier, state),
            _step(project, place.case.label, place.after, state),
        ),
        claims=[sources.claim_of(one, place=0) for one in news.value if one.is_claim],
    )


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


def _parts(report: CaseReport, case: StoredCase) -> list[tuple[UUID, tuple[int, int] | None]]:
    """The parts of the report's file that tell of the case, or all of it."""
    known = report.index.parts(case.identity) if report.index is not None else ()
    return [(report.report_id, part) for part in known or (None,)]


async def _told(report: CaseReport, parts: Sequence[tuple[bytes | None, bytes | None]], case: StoredCase) -> Told:
    bodies = [body for body, _ in parts if body is not None]
    if report.index is not None and len(bodies) > 1:
        return Told(*await to_thread.run_sync(case_of_parts, report.report_id, report.index, bodies, case.identity))
    ((body, document),) = parts[:1]
    stored = Report(id=report.report_id, body=body, document=document)
    found = await to_thread.run_sync(case_of, stored, case.identity)
    if found is None:
        raise NotFoundError(
            f"The file of report {report.report_id} has no case {case.label!r}.", missing=Missing("case", case.label)
        )
    return Told(*found)


async def _told_before(
    report: CaseReport | None, parts: Sequence[tuple[bytes | None, bytes | None]], case: StoredCase
) -> Told | None:
    """The report of the commit before; None where its file was dropped, for that does not take this one's page away."""
    try:
        return await _told(report, parts, case) if report is not None else None
    except GoneError:
        return None


def _step(project: str, case: str, neighbour: CaseReport | None, state: State) -> Step | None:
    if neighbour is None:
        return None
    return Step(_named(neighbour.commit), links.case(project, neighbour.commit.sha, case, machine=state.machine))


def _named(commit: CommitFacts) -> Commit:
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
