"""`/jobs/{id}`: a job with its log, and the forms that decide about it."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.fleet.sources import job_lines
from pullback_dashboards.fleet.view import JobLine, failure_in_words, phase_in_words, progress_of
from pullback_dashboards.job.view import (
    AttemptLine,
    JobView,
    LogView,
    decisions_for,
    from_a_line_on,
    steps_of,
    whole_characters,
)
from pullback_dashboards.queue.view import NO_ESTIMATE, ends_in_words, waiting_line
from pullback_dashboards.rendering import add_formats, page
from pullback_dashboards.routers import page_router
from pullback_service.access.authentication import KnownCaller
from pullback_service.addresses import API
from pullback_service.agents.queries import agent_names
from pullback_service.endpoints import jobs as endpoints
from pullback_service.fields import LARGEST_COUNT, KnownId
from pullback_service.ids import AgentId, JobId, MachineId
from pullback_service.jobs import attempt_logs
from pullback_service.jobs.forecast_inputs import outlook
from pullback_service.jobs.queries import ACTIVE, UNFINISHED, attempts_of, job_by_id, result_of
from pullback_service.machines.queries import machine_names
from pullback_service.models.jobs import Attempt
from pullback_service.sessions import ReadSession, WriteSession

router = page_router()

LOG_SHOWN_BYTES = 64 * 1024
"""The end of a long log is what a person wants to see; the rest is a click away."""
SEE_OTHER = 303


async def _read(
    job_id: KnownId,
    session: ReadSession,
    caller: KnownCaller,
    attempt: Annotated[int | None, Query(ge=1, le=LARGEST_COUNT, description="Whose log; the newest one's.")] = None,
) -> JobView:
    stored = await job_by_id(session, JobId(job_id))
    (line,) = await job_lines(session, [stored])
    attempts = await attempts_of(session, JobId(job_id))
    report_id = await result_of(session, JobId(job_id))
    expected, why = await _expected(session, line)
    log = await _log(session, line, attempts, attempt)
    return JobView(
        job=line,
        steps=steps_of(line.state, line.phase),
        expected=expected,
        why=why,
        timeout_s=stored.job.timeout_s,
        attempts=await _attempts(session, attempts, shown=log.attempt),
        report_href=links.report(str(report_id)) if report_id else None,
        decisions=decisions_for(line, caller),
        log=log,
    )


RequestedView = Annotated[JobView, Depends(_read)]


add_formats(router, "/jobs/{job_id}", RequestedView)


@router.get("/jobs/{job_id}")
@router.get("/jobs/{job_id}.md")
async def job_page(request: Request, view: RequestedView) -> Response:
    """The page."""
    live = view.job.state in UNFINISHED
    return page(
        request,
        "job.html",
        title=f"Job {view.job.id}",
        view=view,
        coming_from=view.job.project,
        formats=("json", "md"),
        scripts=(*(["live.js"] if live else []), *(["log.js"] if view.log.streams else [])),
    )


@router.post("/jobs/{job_id}/cancel")
async def cancel_job(session: WriteSession, job_id: KnownId) -> Response:
    """Cancel the job and show it again."""
    await endpoints.cancel_job(session, job_id)
    return _back(job_id)


@router.post("/jobs/{job_id}/retry")
async def retry_job(session: WriteSession, job_id: KnownId) -> Response:
    """Queue the job again and show it."""
    await endpoints.retry_job(session, job_id)
    return _back(job_id)


@router.post("/jobs/{job_id}/approve")
async def approve_job(session: WriteSession, job_id: KnownId, caller: KnownCaller) -> Response:
    """Let a fork's code run, and show the job again."""
    await endpoints.approve_job(session, job_id, caller)
    return _back(job_id)


def _back(job_id: int) -> Response:
    return RedirectResponse(links.job(job_id), status_code=SEE_OTHER)


async def _expected(session: AsyncSession, line: JobLine) -> tuple[str | None, str | None]:
    """The time when it will begin or end, and why it waits."""
    if line.state not in UNFINISHED:
        return None, None
    seen = await outlook(session)
    if line.state in ACTIVE:
        ends = ends_in_words(seen.remaining_s.get(line.id))
        return ends if ends == NO_ESTIMATE else f"ends {ends}", None
    waiting = waiting_line(line, seen.waiting.get(line.id))
    return None if waiting.stuck else waiting.forecast, waiting.why


async def _attempts(session: AsyncSession, attempts: Sequence[Attempt], *, shown: int) -> tuple[AttemptLine, ...]:
    machines = await machine_names(session, [MachineId(each.machine_id) for each in attempts])
    agents = await agent_names(session, [AgentId(each.agent_id) for each in attempts])
    return tuple(
        AttemptLine(
            number=each.number,
            state=each.state,
            machine=machines[MachineId(each.machine_id)],
            machine_href=links.machine(each.machine_id),
            agent=agents[AgentId(each.agent_id)],
            phase=phase_in_words(each.phase) if each.state in ACTIVE else None,
            progress=progress_of(each.progress),
            failure=failure_in_words(each.failure_kind, each.failure_message) if each.failure_kind else None,
            began_at=each.leased_at,
            ended_at=each.ended_at,
            took_s=(each.ended_at - each.leased_at).total_seconds() if each.ended_at else None,
            log_bytes=each.log_bytes,
            log_href=links.job(each.job_id, attempt=str(each.number)) + "#log-title",
            shown=each.number == shown,
        )
        for each in reversed(attempts)
    )


async def _log(session: AsyncSession, line: JobLine, attempts: Sequence[Attempt], number: int | None) -> LogView:
    """The end of a log, cut at a line. A stream goes on behind it while the job has not ended."""
    newest = attempts[-1].number if attempts else 0
    size = next((each.log_bytes for each in attempts if each.number == (number or newest)), 0)
    piece = await attempt_logs.read(session, JobId(line.id), max(0, size - LOG_SHOWN_BYTES), number=number)
    start = from_a_line_on(piece.content) if piece.offset else 0
    text, read = whole_characters(piece.content[start:], more_follows=not piece.complete)
    query = f"?attempt={piece.attempt}" if piece.attempt else ""
    return LogView(
        text=text,
        attempt=piece.attempt,
        left_out=piece.offset + start,
        end=piece.offset + start + read,
        whole_href=f"{API}/jobs/{line.id}/log{query}",
        streams=line.state in UNFINISHED and piece.attempt == newest,
    )
