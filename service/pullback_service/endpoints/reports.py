"""Uploading reports and reading them back."""

from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import BackgroundTasks, Depends, Header, Query, Request, Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.access.authentication import KnownCaller, address_of
from pullback_service.addresses import API
from pullback_service.audit.trail import Line, note
from pullback_service.background_threads import BackgroundThreads, in_background, large_in_background
from pullback_service.current_settings import KnownSettings
from pullback_service.endpoints.tables import REPORTS
from pullback_service.endpoints.upload_body import (
    OPENAPI_BODY,
    ReportBody,
    is_long,
    is_read_at_once,
    refuse_unknown_parameters,
)
from pullback_service.errors import (
    ConflictError,
    GoneError,
    InvalidInputError,
    NotFoundError,
    TooLargeError,
    UnreadableBodyError,
)
from pullback_service.fields import Name, Sha
from pullback_service.importers.unpacking import is_archive
from pullback_service.listing import LISTED, KnownListing
from pullback_service.models.reports import Report
from pullback_service.paging import Page, page_of, read_cursor
from pullback_service.problems import documented
from pullback_service.process_memory import LARGE_BODY_BYTES, give_back_memory
from pullback_service.reports import queries, stored_files
from pullback_service.reports.case_stream import Parts
from pullback_service.reports.dependencies import KnownIntake
from pullback_service.reports.preparation import prepare_upload
from pullback_service.reports.schemas import (
    PointPreview,
    ReportDetail,
    ReportHead,
    ReportReceipt,
    ReportSummary,
    UploadReceipt,
)
from pullback_service.reports.storage import Upload
from pullback_service.reports.upload_query import UploadParameters, refuse_dirty
from pullback_service.reports.withdrawal import withdraw
from pullback_service.request_work import in_thread
from pullback_service.routers import api_router
from pullback_service.rows_to_models import filled
from pullback_service.sessions import ReadSession, WriteSession

router = api_router(prefix=f"{API}/reports", tags=["reports"])

IdempotencyKey = Annotated[
    Name | None, Header(alias="Idempotency-Key", description="Default: the id of the report itself.")
]
Place = TypeAdapter(tuple[datetime, UUID])

MOST_PREVIEWED = 20
UNCOMMITTED = "uncommitted changes: kept as a report, on no history"


@router.post(
    "",
    status_code=201,
    dependencies=[Depends(refuse_unknown_parameters)],
    openapi_extra=OPENAPI_BODY,
    responses={
        200: {"model": UploadReceipt, "description": "Stored before, the same answer again; or a dry run"},
        **documented(UnreadableBodyError, ConflictError, TooLargeError, InvalidInputError),
    },
)
async def upload_report(
    request: Request,
    body: ReportBody,
    response: Response,
    intake: KnownIntake,
    caller: KnownCaller,
    parameters: Annotated[UploadParameters, Query()],
    settings: KnownSettings,
    background: BackgroundTasks,
    idempotency_key: IdempotencyKey = None,
) -> UploadReceipt:
    """Store a report of ours, bare or as the key `pullback` of a pyperf file, or the file of another tool.

    Read are pyperf, pytest-benchmark, asv, Google Benchmark, BenchmarkTools.jl, criterion.rs, hyperfine,
    github-action-benchmark, the Bencher Metric Format, Conbench and GradBench, recognised by content or by `format=`.
    Our own reports say everything themselves, and the query only confirms it; for other tools' files the query says
    project, commit, branch and machine.
    """
    prepare = partial(prepare_upload, body, parameters, limit=settings.max_report_bytes, now=datetime.now(UTC))

    def line_of(head: ReportHead) -> Line:
        return Line(
            caller,
            action=request.scope["route"].name,
            subject=f"report {head.id}",
            project=head.project,
            address=address_of(request),
            details={"commit": head.commit.sha},
        )

    async with intake.long if await is_long(body) else nullcontext():
        prepared = prepare() if is_read_at_once(body) else await in_thread(prepare)
        if prepared.body_bytes > LARGE_BODY_BYTES:
            background.add_task(give_back_memory)  # when this function and all it holds are gone
        head = prepared.read.head
        if not parameters.allow_dirty:
            refuse_dirty(prepared.read)
        upload = Upload.of(prepared, idempotency_key)
        stored = await (intake.try_out(caller, upload) if parameters.dry_run else intake.keep(upload, line_of(head)))
    members = receipt_of(stored.report, head.project, head.commit.sha).model_dump()
    if parameters.dry_run and stored.created:
        members |= {"url": None, "status": "would be accepted"}
    receipt = UploadReceipt(
        **members,
        branch=head.commit.branch,
        notes=[*prepared.read.notes, *([UNCOMMITTED] if head.commit.dirty else [])],
        dry_run=parameters.dry_run,
        preview=preview_of(prepared.read.parts) if parameters.dry_run else None,
    )
    if prepared.body_bytes > LARGE_BODY_BYTES:
        await in_thread(prepared.read.parts.let_go)
    is_stored = stored.created and not parameters.dry_run
    response.status_code = 201 if is_stored else 200
    if receipt.url is not None:
        response.headers["Location"] = receipt.url
    return receipt


@router.get("", response_model=Page[ReportSummary], responses=LISTED)
async def list_reports(listing: KnownListing, project: Name | None = None, commit: Sha | None = None) -> Response:
    """Reports, newest upload first."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[ReportSummary]:
        rows = await queries.list_reports(
            session, project=project, commit=commit, before=read_cursor(cursor, Place), limit=limit + 1
        )
        return page_of(rows, limit, item=summary_of, key=lambda row: (row.report.received_at, row.report.id))

    return await listing.give(read, REPORTS, name=project)


@router.get("/{report_id}", response_model=ReportDetail, responses=documented(NotFoundError, GoneError))
async def read_report(session: ReadSession, report_id: UUID) -> Response:
    """A report and its document, without the pyperf file it may have come in."""
    stored = await queries.report_by_id(session, report_id, with_body=True)
    summary = summary_of(stored).model_dump_json().encode()

    def write() -> bytes:
        return b'%b,"document":%b}' % (summary[:-1], stored_files.document_json_of(stored.report))

    return Response(await _apart(stored.report).after(session, write), media_type="application/json")


@router.get(
    "/{report_id}/body",
    response_class=Response,
    responses={
        200: {"content": {"application/json": {}, "application/x-tar": {}}},
        **documented(NotFoundError, GoneError),
    },
)
async def read_body_of_report(session: ReadSession, report_id: UUID) -> Response:
    """The uploaded file, decompressed, else byte for byte: `python -m pyperf stats` reads what pyperf wrote."""
    stored = await queries.report_by_id(session, report_id, with_body=True)
    body = await _apart(stored.report).after(session, stored_files.body_of, stored.report)
    media_type, ending = ("application/x-tar", "tar") if is_archive(body) else ("application/json", "json")
    return Response(
        body,
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="report-{report_id}.{ending}"'},
    )


@router.post("/{report_id}/withdraw", responses=documented(NotFoundError))
async def withdraw_report(session: WriteSession, report_id: UUID) -> ReportSummary:
    """Withdraw a report that was uploaded by mistake: it is kept, what it measured leaves history, and its incidents are judged again."""
    stored, is_new = await withdraw(session, report_id)
    note(session, changed=is_new, subject=f"report {report_id}", project=stored.project, commit=stored.commit)
    return summary_of(stored)


def _apart(report: Report) -> BackgroundThreads:
    """The threads in which a report that was read with its files is unpacked."""
    return large_in_background if stored_files.is_large(report) else in_background


def receipt_of(report: Report, project: str, commit: str) -> ReportReceipt:
    """The answer to an upload."""
    return filled(ReportReceipt, report, url=_url(report), project=project, commit=commit)


def summary_of(stored: queries.StoredReport) -> ReportSummary:
    """A report as lists show it."""
    report = stored.report
    return filled(ReportSummary, stored, report, url=_url(report))


def preview_of(parts: Parts) -> list[PointPreview]:
    """The first points of a report, with the units and directions they would be stored in."""
    return [
        filled(PointPreview, point, point.series, case=parts.cases[point.series.case].label)
        for point in parts.points[:MOST_PREVIEWED]
    ]


def _url(report: Report) -> str:
    return f"{API}/reports/{report.id}"
