"""`/reports/{id}`: one upload."""

from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Depends, Query, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.history import Commit, short_of
from pullback_dashboards.rendering import csv_file, csv_of, page, page_at
from pullback_dashboards.report.pooled import pooled_entries
from pullback_dashboards.report.view import (
    TABLE,
    ReportView,
    case_blocks,
    comparison_row,
    facts_of,
    failures_of,
    label_of,
    left_out,
    metrics_of,
    table_of,
)
from pullback_dashboards.rerun_commands import reproduce_command
from pullback_dashboards.routers import page_router
from pullback_dashboards.wording.busyness import busy_words
from pullback_dashboards.wording.moments import read_instant
from pullback_service import statements
from pullback_service.background_threads import in_background, large_in_background
from pullback_service.errors import GoneError, MissingObject, NotFoundError
from pullback_service.exports.comma_separated import tame
from pullback_service.models.reports import Report
from pullback_service.readings.commit_readings import CaseReadings
from pullback_service.reports.queries import StoredReport, outlines_of, report_by_id
from pullback_service.reports.reconstruction import remains_of
from pullback_service.reports.stored_files import is_large, outline_of
from pullback_service.rows_to_models import filled
from pullback_service.sessions import ReadSession

T = TypeVar("T")

router = page_router()

CASES_OF_A_PAGE = 200
MOST_FAILURES = 200

PageNumber = Annotated[int, Query(ge=1, description="Of its cases, two hundred at a time.")]


async def _stored(session: AsyncSession, report_id: UUID) -> tuple[StoredReport, Report | None]:
    stored = await report_by_id(session, report_id)
    return stored, (await statements.answer(session, outlines_of([report_id]))).get(report_id)


async def _read(report_id: UUID, session: ReadSession, page: PageNumber = 1) -> ReportView:
    view = await view_of(session, *await _stored(session, report_id), page=page)
    if page > view.pages:
        raise NotFoundError(
            f"There is no page {page}: the report has {view.pages}, choose one of them.",
            missing=MissingObject("page", str(page)),
        )
    return view


RequestedView = Annotated[ReportView, Depends(_read)]


@router.get("/reports/{report_id}.csv")
async def report_csv(report_id: UUID, session: ReadSession) -> Response:
    """Every metric of every variant of every case of all pages, as CSV."""
    stored, file = await _stored(session, report_id)

    def write(document: Mapping[str, Any], _: str | None) -> str:
        about = stored.commit, tame(stored.machine)
        return csv_of(("commit", "machine", *TABLE), ((*about, *row) for row in table_of(document["cases"])))

    text = await _made_of(session, stored, file, write)
    return csv_file(f"report-{short_of(stored.commit)}", lambda: text)


@page_at(router, "/reports/{report_id}", RequestedView)
async def report_page(request: Request, view: RequestedView) -> Response:
    """The page."""
    return page(
        request,
        "report.html",
        title=f"Report at {short_of(view.commit.sha)}",
        project=view.project,
        machine=view.machine,
        view=view,
        against_baseline=view.compares,
        baseline=view.baseline,
        formats=("json", "csv", "md"),
        scripts=("copy.js",),
    )


async def view_of(
    session: AsyncSession,
    stored: StoredReport,
    file: Report | None,
    *,
    page: int = 1,
    of_commit: Mapping[str, CaseReadings] | None = None,
) -> ReportView:
    """The view of a report by its file; where that was dropped, what its rows still say. `of_commit`: as `report_view`."""
    return await _made_of(session, stored, file, partial(report_view, stored, page=page, of_commit=of_commit))


async def _made_of(
    session: AsyncSession,
    stored: StoredReport,
    file: Report | None,
    make: Callable[[Mapping[str, Any], str | None], T],
) -> T:
    """The result of `make`, in a thread: of a report's document, or of what remains and why its file is gone."""
    read = file or Report(id=stored.report.id)
    thread = large_in_background if is_large(read) else in_background
    try:
        return await thread.after(session, lambda: make(outline_of(read), None))
    except GoneError as error:
        gone = error.detail
    remains = await remains_of(session, stored.report)
    return await large_in_background.after(session, make, remains, gone)


def report_view(
    stored: StoredReport,
    document: Mapping[str, Any],
    dropped: str | None = None,
    *,
    page: int = 1,
    of_commit: Mapping[str, CaseReadings] | None = None,
) -> ReportView:
    """A page of a stored report, by the outline of its document; no cases where there is no such page.

    `of_commit`: readings that stand in the place of its values, with cases and variants that it does not have.
    """
    report = stored.report
    entries = document["cases"]
    stated = document.get("comparisons", [])
    first = (page - 1) * CASES_OF_A_PAGE
    visible = slice(first, first + CASES_OF_A_PAGE)
    told = entries[visible]
    if of_commit is not None:
        # A longer report is not read whole to know which cases it lacks: other reports have their own pages.
        most_others = CASES_OF_A_PAGE if len(entries) <= CASES_OF_A_PAGE else 0
        told = pooled_entries(told, of_commit, most_others=most_others)
    blocks = tuple(case_blocks(told, project=stored.project))
    failures = list(failures_of(entries, cases_of_a_page=CASES_OF_A_PAGE)) if report.failures else []
    commit = commit_of(document["commit"])
    harness = document["harness"]
    metrics = metrics_of(document) if stated else {}
    return filled(
        ReportView,
        stored,
        report,
        id=str(report.id),
        commit=commit,
        busy=busy_words({**harness, "quality": report.quality}),
        late=report.status == "late",
        facts=facts_of({"name": stored.machine, **document["machine"].get("facts", {})}),
        harness=facts_of({"harness": harness["version"], **(harness.get("preflight") or {})}),
        cases=blocks,
        failures=tuple(failures[:MOST_FAILURES]),
        first=first + 1,
        page=page,
        pages=max(1, ceil(max(len(entries), len(stated)) / CASES_OF_A_PAGE)),
        all_cases=len(entries),
        all_failures=len(failures),
        all_comparisons=len(stated),
        dropped=dropped,
        left_out=left_out(document),
        comparisons=tuple(
            comparison_row(
                label_of(raw["case"]),
                raw,
                Commit(raw["reference"]),
                Commit(raw["candidate"]),
                metrics,
                quality=report.quality,
                dirty=report.dirty,
            )
            for raw in stated[visible]
        ),
        # The options that cases of a suite ask for are those of its first ones.
        reproduce=reproduce_command({**document, "cases": list(entries[:CASES_OF_A_PAGE])}, commit),
        job_href=links.job(report.job_id) if report.job_id is not None else None,
    )


def commit_of(raw: Mapping[str, Any]) -> Commit:
    """The commit as a report tells of it."""
    return Commit(
        raw["sha"], raw.get("title"), raw.get("author"), read_instant(raw.get("authored_at")), raw.get("branch")
    )
