"""`/reports/{id}`: one upload."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any
from uuid import UUID

from anyio import to_thread
from fastapi import Depends, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.history import Commit, short_of
from pullback_dashboards.measuring_again import reproduce_command
from pullback_dashboards.rendering import csv_twin, json_twin, page
from pullback_dashboards.report.view import (
    Numbers,
    ReportView,
    case_blocks,
    comparison_row,
    facts_of,
    failures_of,
    left_out,
    metrics_of,
)
from pullback_dashboards.routers import page_router
from pullback_dashboards.wording import factors
from pullback_dashboards.wording.busyness import busy_words
from pullback_dashboards.wording.moments import read_instant
from pullback_service import statements
from pullback_service.errors import GoneError
from pullback_service.models.reports import Report
from pullback_service.reports.queries import StoredReport, outlines_of, report_by_id
from pullback_service.reports.remains import remains_of
from pullback_service.reports.stored_files import outline_of
from pullback_service.series.cases import label
from pullback_service.sessions import ReadSession

router = page_router()

COLUMNS = (
    "commit", "machine", "case", "variant", "kind", "metric", "value", "unit", "factor", "low", "high", "groups",
    "outcome", "method", "failure",
)  # fmt: skip


async def _read(report_id: UUID, session: ReadSession) -> ReportView:
    stored = await report_by_id(session, report_id)
    return await view_of(session, stored, (await statements.answer(session, outlines_of([report_id]))).get(report_id))


AskedView = Annotated[ReportView, Depends(_read)]


@router.get("/reports/{report_id}.json")
async def report_json(view: AskedView) -> Response:
    """The same as JSON; the report as it was uploaded is at /api/v1/reports/{id}/body."""
    return json_twin(view)


@router.get("/reports/{report_id}.csv")
async def report_csv(view: AskedView) -> Response:
    """Every metric of every variant of every case, as CSV."""
    return csv_twin(f"report-{view.commit.short}", table_of(view), COLUMNS)


@router.get("/reports/{report_id}")
@router.get("/reports/{report_id}.md")
async def report_page(request: Request, view: AskedView) -> Response:
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
        twins=("json", "csv", "md"),
        scripts=("copy.js",),
    )


async def view_of(session: AsyncSession, stored: StoredReport, file: Report | None) -> ReportView:
    """The view of a report by its file; where that was dropped, what its rows still say."""
    try:
        document = await to_thread.run_sync(outline_of, file or Report(id=stored.report.id))
    except GoneError as error:
        return report_view(stored, await remains_of(session, stored.report), dropped=error.detail)
    return report_view(stored, document)


def report_view(stored: StoredReport, document: Mapping[str, Any], *, dropped: str | None = None) -> ReportView:
    """The view of a stored report and the outline of its document."""
    report = stored.report
    labels = [_label(entry["case"]) for entry in document["cases"]]
    blocks = tuple(case_blocks(document, project=stored.project, labels=labels))
    commit = commit_of(document["commit"])
    harness = document["harness"]
    stated = document.get("comparisons", [])
    metrics = metrics_of(document) if stated else {}
    return ReportView(
        id=str(report.id),
        project=stored.project,
        commit=commit,
        machine=stored.machine,
        suite=report.suite,
        busy=busy_words({**harness, "quality": report.quality}),
        dirty=report.dirty,
        late=report.status == "late",
        started_at=report.started_at,
        duration_s=report.duration_s,
        facts=facts_of({"name": stored.machine, **document["machine"].get("facts", {})}),
        harness=facts_of({"harness": harness["version"], **(harness.get("preflight") or {})}),
        cases=blocks,
        failures=failures_of(blocks),
        format=report.format,
        dropped=dropped,
        left_out=left_out(document),
        comparisons=tuple(
            comparison_row(
                _label(raw["case"]),
                raw,
                Commit(raw["reference"]),
                Commit(raw["candidate"]),
                metrics,
                quality=report.quality,
                dirty=report.dirty,
            )
            for raw in stated
        ),
        reproduce=reproduce_command(document, commit),
        job_href=links.job(report.job_id) if report.job_id is not None else None,
    )


def table_of(view: ReportView) -> Iterator[dict[str, Any]]:
    """One row for each metric of each variant of each case; a failure is a row without a number."""
    for block in view.cases:
        for row in block.variants:
            told = {
                "commit": view.commit.sha, "machine": view.machine, "case": block.case, "variant": row.variant, "kind": row.kind,
            }  # fmt: skip
            if row.failure or row.numbers is None:
                yield told | {"failure": row.failure}
                continue
            if row.numbers.value is not None:
                yield told | _columns_of("time", row.numbers)
            for amount in row.amounts:
                yield told | _columns_of(amount.metric, amount.numbers) | {"method": amount.method}
        if block.failure and not block.variants:
            yield {
                "commit": view.commit.sha, "machine": view.machine, "case": block.case, "failure": block.failure,
            }  # fmt: skip


def _columns_of(metric: str, numbers: Numbers) -> dict[str, Any]:
    return {
        "metric": metric,
        "value": numbers.value,
        "unit": numbers.unit,
        **factors.columns_of(numbers),
        "groups": numbers.groups,
        "outcome": numbers.outcome,
    }


def commit_of(raw: Mapping[str, Any]) -> Commit:
    """The commit as a report tells of it."""
    return Commit(
        raw["sha"], raw.get("title"), raw.get("author"), read_instant(raw.get("authored_at")), raw.get("branch")
    )


def _label(case: Mapping[str, Any]) -> str:
    return label(case["workload"], case.get("params", {}), case.get("dtype"), case.get("device"))
