"""Reading a case at a commit: the reports that hold it, and its changes since the previous commit."""

from asyncio import gather
from collections.abc import Iterable, Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links, sources
from pullback_dashboards.case.irregularities import lines_of_case
from pullback_dashboards.case.view import CaseView, ReportEntry, Step, case_view
from pullback_dashboards.history import Commit
from pullback_dashboards.incident_marks import marks_of
from pullback_dashboards.report.pooled import pooled_entry
from pullback_service import statements
from pullback_service.comparisons.queries import SeriesComparison
from pullback_service.errors import GoneError, MissingObject, NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.incidents.accuracy import resolutions_of
from pullback_service.incidents.irregularities import newest_of_case
from pullback_service.incidents.queries import incident_changes_at
from pullback_service.models.reports import Report
from pullback_service.readings.commit_readings import SeriesReading
from pullback_service.readings.reading import Reading
from pullback_service.reports.case_reports import CasePlace, CaseReport, StoredCase
from pullback_service.reports.queries import file_parts
from pullback_service.reports.stored_files import case_of, case_of_parts
from pullback_service.request_work import in_thread
from pullback_service.series.queries import CommitFacts
from pullback_service.steps.queries import news_at, steps_of_case


async def case_at(
    session: AsyncSession,
    project_id: ProjectId,
    project: str,
    place: CasePlace,
    *,
    machine: str | None = None,
    with_irregularities: bool = False,
) -> CaseView:
    """The case by the readings of a commit and of the one before, with the samples of a report of each.

    Addresses have the `machine` that was asked for.

    GoneError where the file of its report was dropped.
    """
    here, earlier = place.here, place.before
    asked = [*_parts(here, place.case), *(_parts(earlier, place.case) if earlier is not None else [])]
    async with statements.together(session) as ask:
        parts = ask(file_parts(asked))
        news = ask(news_at(here.machine_id, [here.commit.id], case_id=place.case.id))
        resolutions = ask(resolutions_of(place.case.id, here.machine_id))
        incident_changes = ask(
            incident_changes_at(project_id, here.machine_id, [here.commit.id], case_id=place.case.id)
        )
        series = ask(steps_of_case(place.case.id, here.machine_id, here.commit.id, earlier.commit.id if earlier else 0))
        newest = ask(newest_of_case(project_id, place.case.id, here.machine_id)) if with_irregularities else None
    of_here = [part for (report_id, _), part in zip(asked, parts.value, strict=True) if report_id == here.report_id]
    # Much of the time of this page is unpacking two files, which two threads do.
    now, before, irregularities = await gather(
        _told(here, of_here, place.case),
        _told_before(earlier, parts.value[len(of_here) :], place.case),
        in_thread(lines_of_case, project, newest.value if newest is not None else ()),
    )
    return case_view(
        _pooled(now, [(one, one.candidate) for one in series.value]),
        None if before is None else _pooled(before, [(one, one.reference) for one in series.value]),
        {one.key[2:]: one for one in series.value} if earlier else {},
        project=project,
        case=place.case.label,
        commit=_named(here.commit),
        machine=here.machine,
        report_id=str(here.report_id),
        steps=(
            _step(project, place.case.label, earlier, machine),
            _step(project, place.case.label, place.after, machine),
        ),
        resolutions=resolutions.value,
        incidents=marks_of(
            project,
            dict.fromkeys(
                (one.incident_id, one.kind, one.state)
                for one in incident_changes.value
                if one.commit_id == here.commit.id
            ),
        ),
        irregularities=irregularities,
        claims=[sources.claim_of(one, place=0) for one in news.value if one.is_claim],
    )


def _parts(report: CaseReport, case: StoredCase) -> list[tuple[UUID, tuple[int, int] | None]]:
    """The parts of the report's file that tell of the case, or all of it."""
    known = report.index.parts(case.identity) if report.index is not None else ()
    return [(report.report_id, part) for part in known or (None,)]


async def _told(
    report: CaseReport, parts: Sequence[tuple[bytes | None, bytes | None]], case: StoredCase
) -> ReportEntry:
    bodies = [body for body, _ in parts if body is not None]
    if report.index is not None and len(bodies) > 1:
        return ReportEntry(*await in_thread(case_of_parts, report.report_id, report.index, bodies, case.identity))
    ((body, document),) = parts[:1]
    stored = Report(id=report.report_id, body=body, document=document)
    result = await in_thread(case_of, stored, case.identity)
    if result is None:
        raise NotFoundError(
            f"The file of report {report.report_id} has no case {case.label!r}.",
            missing=MissingObject("case", case.label),
        )
    return ReportEntry(*result)


async def _told_before(
    report: CaseReport | None, parts: Sequence[tuple[bytes | None, bytes | None]], case: StoredCase
) -> ReportEntry | None:
    """The report of the commit before; None where its file was dropped, for that does not take this one's page away."""
    try:
        return await _told(report, parts, case) if report is not None else None
    except GoneError:
        return None


def _pooled(told: ReportEntry, of_commit: Iterable[tuple[SeriesComparison, Reading | None]]) -> ReportEntry:
    readings = (
        SeriesReading(one.key[2], one.kind, one.key[3], one.unit, one.direction, one.exact, reading)
        for one, reading in of_commit
        if reading is not None
    )
    return ReportEntry(told.document, pooled_entry(told.entry, readings), told.entry)


def _step(project: str, case: str, neighbour: CaseReport | None, machine: str | None) -> Step | None:
    if neighbour is None:
        return None
    return Step(_named(neighbour.commit), links.case(project, neighbour.commit.sha, case, machine=machine))


def _named(commit: CommitFacts) -> Commit:
    return Commit(commit.sha, commit.title, commit.author, commit.authored_at, commit.branch)
