"""Creating and watching jobs; reports of agents about their attempts."""

from contextlib import nullcontext
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Header, Path, Query, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.access.authentication import KnownCaller
from pullback_service.addresses import API
from pullback_service.agents.queries import note_at_work, told_by
from pullback_service.audit.trail import note
from pullback_service.commits.queries import parents_of
from pullback_service.commits.schemas import CommitSummary
from pullback_service.current_settings import KnownSettings
from pullback_service.endpoints.reports import IdempotencyKey, receipt_of
from pullback_service.endpoints.tables import JOBS
from pullback_service.endpoints.upload_body import OPENAPI_BODY, ReportBody, is_long, read_limited
from pullback_service.errors import (
    ConflictError,
    GoneError,
    InvalidInputError,
    NotFoundError,
    OffsetError,
    TooLargeError,
    UnreadableBodyError,
)
from pullback_service.fields import LARGEST_COUNT, LARGEST_ID, KnownId, Name, Sha
from pullback_service.ids import AgentId, JobId
from pullback_service.jobs import attempt_logs, leases, queries, user_actions
from pullback_service.jobs.dependencies import KnownLogWaits
from pullback_service.jobs.queries import JobChoice, StoredJob
from pullback_service.jobs.schemas import (
    AttemptSummary,
    FailureAnswer,
    FailureStatement,
    Heartbeat,
    HeartbeatAnswer,
    JobChange,
    JobDetail,
    JobKind,
    JobOrigin,
    JobReceipt,
    JobRequest,
    JobState,
    JobSummary,
    LogReceipt,
)
from pullback_service.listing import LISTED, KnownListing
from pullback_service.paging import Page, id_in, page_of
from pullback_service.problems import documented
from pullback_service.reports.dependencies import KnownIntake
from pullback_service.reports.preparation import prepare
from pullback_service.reports.report_row import JobAttempt
from pullback_service.reports.storage import Upload, keep
from pullback_service.reports.upload_query import UploadParameters, refuse_contradictions
from pullback_service.request_work import in_thread
from pullback_service.routers import api_router
from pullback_service.rows_to_models import filled
from pullback_service.sessions import OpenedReading, ReadSession, WriteSession
from pullback_service.tokens.queries import refuse_ended

router = api_router(prefix=f"{API}/jobs", tags=["jobs"])

LONGEST_LOG_PIECE = 1024 * 1024

AttemptNumber = Annotated[int, Path(ge=1, le=LARGEST_COUNT)]
Offset = Annotated[int, Query(ge=0, le=LARGEST_ID // 2, description="Bytes before the piece.")]
LeaseHeader = Annotated[UUID, Header(alias="Pullback-Lease", description="The lease token of the claim.")]


@router.post(
    "",
    status_code=201,
    responses={
        200: {"model": JobDetail, "description": "A standing job for the same thing"},
        **documented(InvalidInputError),
    },
)
async def create_job(
    request: JobRequest,
    response: Response,
    session: WriteSession,
    force: Annotated[bool, Query(description="Create a job even if an identical one exists.")] = False,  # noqa: FBT002 - a query parameter has no keyword form
) -> JobDetail:
    """Queue work: a suite at a commit, or two commits compared. Asking twice gives the same job.

    A commit of a fork makes the job untrusted: it waits for `POST /jobs/{job_id}/approve`.
    """
    stored, created = await queries.create_job(session, request, force=force)
    detail = await _detail(session, stored)
    note(
        session,
        changed=created,
        subject=f"job {stored.job.id}",
        project=request.project,
        commit=request.commit.sha,
        suite=request.suite,
        trust=stored.job.trust,
    )
    response.status_code = 201 if created else 200
    response.headers["Location"] = detail.url
    return detail


async def _chosen(
    project: Name | None = None,
    commit: Sha | None = None,
    state: JobState | None = None,
    suite: Name | None = None,
    kind: JobKind | None = None,
    origin: JobOrigin | None = None,
    machine_id: Annotated[KnownId | None, Query(description="The machine that tried them, or alone may.")] = None,
    awaits_approval: Annotated[
        bool | None, Query(description="True: only those that wait for an administrator; false: only the others.")
    ] = None,
) -> JobChoice:
    return JobChoice(
        project=project,
        commit=commit,
        state=state,
        suite=suite,
        kind=kind,
        origin=origin,
        machine_id=machine_id,
        awaits_approval=awaits_approval,
    )


ChosenJobs = Annotated[JobChoice, Depends(_chosen)]


@router.get("", response_model=Page[JobSummary], responses=LISTED)
async def list_jobs(listing: KnownListing, chosen: ChosenJobs) -> Response:
    """Jobs, newest first, by any of their properties."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[JobSummary]:
        rows = await queries.list_jobs(session, choice=chosen, before_id=id_in(cursor), limit=limit + 1)
        parents = await parents_of(session, [row.commit.id for row in rows])
        return page_of(
            rows,
            limit,
            item=lambda row: _summary(row, parents.get(row.commit.id, [])),
            key=lambda row: (row.job.id,),
        )

    return await listing.give(read, JOBS, name=chosen.project)


@router.get("/{job_id}", responses=documented(NotFoundError))
async def read_job(session: ReadSession, job_id: KnownId) -> JobDetail:
    """A job with its attempts and its result."""
    return await _detail(session, await queries.job_by_id(session, JobId(job_id)))


@router.post("/{job_id}/cancel", responses=documented(NotFoundError, ConflictError))
async def cancel_job(session: WriteSession, job_id: KnownId) -> JobDetail:
    """Cancel a job: a waiting one at once, a running one at its next heartbeat; one that has ended otherwise is a conflict."""
    return await _steered(session, job_id, changed=await leases.cancel(session, JobId(job_id)))


@router.post("/{job_id}/retry", responses=documented(NotFoundError, ConflictError))
async def retry_job(session: WriteSession, job_id: KnownId) -> JobDetail:
    """Queue a failed, lost or cancelled job again, with three more attempts; its history stays.

    One that pauses after a failed attempt pauses no longer. One that waits or runs stays as it is, so repeating the request
    is harmless; one that is done, or being cancelled, is a conflict.
    """
    return await _steered(session, job_id, changed=await user_actions.retry(session, JobId(job_id)))


@router.post("/{job_id}/approve", responses=documented(NotFoundError, ConflictError))
async def approve_job(session: WriteSession, job_id: KnownId, caller: KnownCaller) -> JobDetail:
    """Let a fork's code run: an untrusted job, on a machine that accepts untrusted ones and on no other.

    Look at the commit first. Trusted and approved jobs stay as they are; one that has ended is a conflict.
    """
    return await _steered(session, job_id, changed=await user_actions.approve(session, JobId(job_id), by=caller.name))


@router.patch("/{job_id}", responses=documented(NotFoundError, ConflictError, InvalidInputError))
async def change_job(change: JobChange, session: WriteSession, job_id: KnownId) -> JobDetail:
    """Change the priority of a job that has not ended."""
    changed = await user_actions.set_priority(session, JobId(job_id), change.priority)
    return await _steered(session, job_id, changed=changed, priority=change.priority)


@router.get(
    "/{job_id}/log",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **documented(NotFoundError, OffsetError)},
)
async def read_log(
    request: Request,
    reading: OpenedReading,
    caller: KnownCaller,
    waits: KnownLogWaits,
    job_id: KnownId,
    offset: Offset = 0,
    attempt: Annotated[int | None, Query(ge=1, le=LARGEST_COUNT, description="Default: the newest.")] = None,
    wait_s: Annotated[float, Query(ge=0, le=30, description="Seconds to wait for more if nothing follows yet.")] = 0,
) -> Response:
    """The log from a byte offset on, as it was sent, at most a mebibyte at once.

    `Pullback-Next-Offset` is where to read on; `Pullback-Log-Complete: true` says that nothing will follow. To follow a log while
    it is written, ask again from there with `wait_s`: the answer comes with the next bytes, or when the attempt has ended. Where
    `Pullback-Job-State` is then `queued`, `leased` or `running`, the attempt with the next number follows.
    """
    number = attempt

    async def read() -> attempt_logs.LogPiece:
        nonlocal number
        async with reading() as session:
            piece = await attempt_logs.read(session, JobId(job_id), offset, number=number)
            await refuse_ended(session, caller)
        number = piece.attempt or 1  # the same one with every look, also where two begin between them
        return piece

    piece = await waits.until(read, lambda result: bool(result.content) or result.complete, request, wait_s)
    return Response(
        piece.content,
        media_type="text/plain; charset=utf-8",
        headers={
            "Pullback-Attempt": str(piece.attempt),
            "Pullback-Job-State": piece.job_state,
            "Pullback-Log-Size": str(piece.size),
            "Pullback-Next-Offset": str(piece.offset + len(piece.content)),
            "Pullback-Log-Complete": "true" if piece.complete else "false",
            "Cache-Control": "no-store",
        },
    )


@router.get("/{job_id}/log/stream", deprecated=True, status_code=410, responses=documented(GoneError))
async def follow_log(job_id: KnownId) -> None:
    """The address of server-sent events, which releases before this one sent: logs are followed with `wait_s`."""
    raise GoneError(
        f"Logs are no longer sent as events: follow this one with GET {API}/jobs/{job_id}/log?offset=0&wait_s=30."
    )


@router.post(
    "/{job_id}/attempts/{number}/heartbeat", tags=["agents"], responses=documented(NotFoundError, ConflictError)
)
async def heartbeat(
    beat: Heartbeat, session: WriteSession, settings: KnownSettings, job_id: KnownId, number: AttemptNumber
) -> HeartbeatAnswer:
    """Renew a lease, say how far the work is, and learn whether to go on."""
    locked = await leases.hold(session, JobId(job_id), number, beat.lease_token)
    answer = await leases.heartbeat(
        session,
        locked,
        phase=beat.phase,
        progress=beat.progress.model_dump(include={"done", "total", "message"}) if beat.progress else None,
        lease_s=settings.lease_s,
    )
    await note_at_work(session, AgentId(locked.attempt.agent_id), told_by(beat.spool))
    return HeartbeatAnswer(answer=answer, heartbeat_s=settings.heartbeat_s)


async def _log_piece(request: Request) -> bytes:
    return await read_limited(request, LONGEST_LOG_PIECE, "piece of log", "nothing: cut it up")


@router.put(
    "/{job_id}/attempts/{number}/log",
    tags=["agents"],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
    responses=documented(NotFoundError, ConflictError, TooLargeError, OffsetError),
)
async def append_log(
    content: Annotated[bytes, Depends(_log_piece)],
    session: WriteSession,
    settings: KnownSettings,
    job_id: KnownId,
    number: AttemptNumber,
    offset: Offset,
    lease: LeaseHeader,
) -> LogReceipt:
    """Store a piece of the log. A 416 says by `expected_offset` where to go on."""
    locked = await leases.hold(session, JobId(job_id), number, lease)
    return LogReceipt(
        size=await attempt_logs.append(session, locked, offset, content, most_bytes=settings.max_log_bytes)
    )


async def _refuse_unknown_lease(
    opened: OpenedReading, job_id: KnownId, number: AttemptNumber, lease: LeaseHeader
) -> None:
    """Refuse who has no lease before a body is read."""
    async with opened() as session:
        await leases.refuse_unknown(session, JobId(job_id), number, lease)


@router.post(
    "/{job_id}/attempts/{number}/report",
    tags=["agents"],
    dependencies=[Depends(_refuse_unknown_lease)],
    status_code=201,
    openapi_extra=OPENAPI_BODY,
    responses={
        200: {"model": JobReceipt, "description": "This report was stored before; the same answer again"},
        **documented(UnreadableBodyError, NotFoundError, ConflictError, TooLargeError, InvalidInputError),
    },
)
async def report_result(
    body: ReportBody,
    response: Response,
    session: WriteSession,
    intake: KnownIntake,
    job_id: KnownId,
    number: AttemptNumber,
    lease: LeaseHeader,
    idempotency_key: IdempotencyKey = None,
) -> JobReceipt:
    """Store the result of an attempt, measured on the machine that was given it.

    That of an attempt whose lease was lost is stored too: as `late` while another attempt runs, and where the job is done or cancelled;
    otherwise it is accepted, and the job is done. A late report is accepted when the running attempt ends without a result.
    """
    async with intake.long if await is_long(body) else nullcontext():
        prepared = await in_thread(prepare, body)
    locked = await leases.hold(session, JobId(job_id), number, lease)
    stored = await queries.job_by_id(session, JobId(job_id))
    head = prepared.read.head
    refuse_contradictions(UploadParameters(project=stored.project, commit=stored.commit.sha), head, of="job")
    await leases.refuse_another_machine(session, locked.attempt, head.machine.fingerprint, head.machine.host)
    for_job = JobAttempt(JobId(job_id), number, late=not locked.gives_result)
    results = await keep(session, Upload.of(prepared, idempotency_key, for_job))
    if results.created:
        leases.finish(locked)
        await session.flush()
    response.status_code = 201 if results.created else 200
    receipt = receipt_of(results.report, head.project, head.commit.sha)
    note(session, subject=f"report {receipt.id}", project=head.project, job=job_id, attempt=number)
    response.headers["Location"] = receipt.url
    return JobReceipt(**receipt.model_dump(), job_state=locked.job.state)


@router.post("/{job_id}/attempts/{number}/fail", tags=["agents"], responses=documented(NotFoundError, ConflictError))
async def fail_attempt(
    statement: FailureStatement, session: WriteSession, settings: KnownSettings, job_id: KnownId, number: AttemptNumber
) -> FailureAnswer:
    """End an attempt without a result. Only `infra` faults called retryable are tried again, after a pause."""
    locked = await leases.hold(session, JobId(job_id), number, statement.lease_token)
    answer = await leases.fail(
        session,
        locked,
        kind=statement.kind,
        message=statement.message,
        retryable=statement.retryable,
        pause_s=settings.retry_pause_s,
        agent_ended=statement.agent_ended,
    )
    await session.flush()
    return FailureAnswer(answer=answer, job_state=locked.job.state)


async def _steered(session: WriteSession, job_id: int, *, changed: bool, **details: int) -> JobDetail:
    """A job after somebody decided about it, with a line in the audit log where that changed something."""
    stored = await queries.job_by_id(session, JobId(job_id))
    note(session, changed=changed, subject=f"job {job_id}", project=stored.project, commit=stored.commit.sha, **details)
    return await _detail(session, stored)


async def _detail(session: ReadSession, stored: StoredJob) -> JobDetail:
    job_id = JobId(stored.job.id)
    parents = await parents_of(session, [stored.commit.id])
    summary = _summary(stored, parents.get(stored.commit.id, []))
    return JobDetail(
        **summary.model_dump(),
        history=[filled(AttemptSummary, attempt) for attempt in await queries.attempts_of(session, job_id)],
        report_id=await queries.result_of(session, job_id),
    )


def _summary(stored: StoredJob, parents: list[str]) -> JobSummary:
    job = stored.job
    return filled(
        JobSummary,
        stored,
        job,
        url=f"{API}/jobs/{job.id}",
        commit=CommitSummary.of(stored.commit, parents),
        cancel_requested=job.cancel_requested_at is not None,
        awaits_approval=job.awaits_approval,
        not_before=job.not_before if job.state == "queued" else None,
    )
