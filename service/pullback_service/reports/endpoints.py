"""Uploading reports and reading them back."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Response
from pydantic import TypeAdapter

from pullback_service.addresses import API
from pullback_service.audit.keeping import note, note_nothing
from pullback_service.database import ReadSession, WriteSession
from pullback_service.errors import ConflictError, InvalidInputError, NotFoundError, TooLargeError, UnreadableBodyError
from pullback_service.fields import Name, Sha
from pullback_service.paging import Cursor, Limit, Page, page_of, read_cursor
from pullback_service.problems import documented
from pullback_service.reports import keeping, queries
from pullback_service.reports.models import Report
from pullback_service.reports.receiving import OPENAPI_BODY, ReportBody, Stated, refuse_contradictions, refuse_dirty
from pullback_service.reports.schemas import ReportDetail, ReportReceipt, ReportSummary

router = APIRouter(prefix=f"{API}/reports", tags=["reports"])

IdempotencyKey = Annotated[
    Name | None, Header(alias="Idempotency-Key", description="Default: the id of the report itself.")
]
Place = TypeAdapter(tuple[datetime, UUID])


@router.post(
    "",
    status_code=201,
    openapi_extra=OPENAPI_BODY,
    responses={
        200: {"model": ReportReceipt, "description": "This report was stored before; the same answer again"},
        **documented(UnreadableBodyError, ConflictError, TooLargeError, InvalidInputError),
    },
)
async def upload_report(
    body: ReportBody,
    response: Response,
    session: WriteSession,
    stated: Annotated[Stated, Query()],
    idempotency_key: IdempotencyKey = None,
    allow_dirty: Annotated[bool, Query(description="Keep a report of uncommitted changes, off the history.")] = False,  # noqa: FBT002 - a query parameter has no keyword form
) -> ReportReceipt:
    """Store a report, bare or as the key `pullback` of a pyperf file.

    The query only confirms what the report says of itself.
    """
    prepared = await to_thread.run_sync(keeping.prepare, body)
    refuse_contradictions(stated, prepared.read.document)
    if not allow_dirty:
        refuse_dirty(prepared.read)
    kept = await keeping.keep(session, prepared, idempotency_key)
    receipt = receipt_of(kept.report, prepared.read.document.project, prepared.read.document.commit.sha)
    response.status_code = 201 if kept.created else 200
    response.headers["Location"] = receipt.url
    if kept.created:
        note(session, subject=f"report {receipt.id}", project=receipt.project, commit=receipt.commit)
    else:
        note_nothing(session)
    return receipt


@router.get("", responses=documented(InvalidInputError))
async def list_reports(
    session: ReadSession,
    project: Name | None = None,
    commit: Sha | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[ReportSummary]:
    """Reports, newest upload first."""
    rows = await queries.list_reports(
        session, project=project, commit=commit, before=read_cursor(cursor, Place), limit=limit + 1
    )
    return page_of(rows, limit, item=summary_of, key=lambda row: (row.report.received_at, row.report.id))


@router.get("/{report_id}", responses=documented(NotFoundError))
async def read_report(session: ReadSession, report_id: UUID) -> ReportDetail:
    """A report and its document, without the pyperf file it may have come in."""
    stored = await queries.report_by_id(session, report_id, with_body=True)
    document = await to_thread.run_sync(queries.document_of, stored.report)
    return ReportDetail(**summary_of(stored).model_dump(), document=document)


@router.get(
    "/{report_id}/body",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}, **documented(NotFoundError)},
)
async def read_body_of_report(session: ReadSession, report_id: UUID) -> Response:
    """The uploaded file, byte for byte: `python -m pyperf stats` reads it when it came from `pullback run -o`."""
    stored = await queries.report_by_id(session, report_id, with_body=True)
    body = await to_thread.run_sync(queries.body_of, stored.report)
    return Response(
        body,
        media_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="report-{report_id}.json"'},
    )


def receipt_of(report: Report, project: str, commit: str) -> ReportReceipt:
    """The answer to an upload."""
    return ReportReceipt(**_receipt_members(report), project=project, commit=commit)


def summary_of(stored: queries.StoredReport) -> ReportSummary:
    """A report as lists show it."""
    report = stored.report
    return ReportSummary(
        **_receipt_members(report),
        project=stored.project,
        commit=stored.commit,
        machine=stored.machine,
        suite=report.suite,
        quality="clean" if report.quality == "clean" else "contaminated",
        dirty=report.dirty,
        job_id=report.job_id,
        attempt=report.attempt,
        body_bytes=report.body_bytes,
        started_at=report.started_at,
        duration_s=report.duration_s,
        received_at=report.received_at,
    )


def _receipt_members(report: Report) -> dict[str, Any]:
    return {
        "id": report.id,
        "url": f"{API}/reports/{report.id}",
        "status": report.status,
        "cases": report.cases,
        "points": report.points,
        "failures": report.failures,
    }
