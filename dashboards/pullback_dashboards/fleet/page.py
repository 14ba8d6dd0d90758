"""`/jobs` and `/jobs/{id}`: the queue and the fleet, and a job with its log."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from pullback_dashboards import links
from pullback_dashboards.choices import Empty, Question, question
from pullback_dashboards.fleet.sources import fleet_now, job_line
from pullback_dashboards.fleet.view import Fleet, JobLine
from pullback_dashboards.rendering import csv_twin, json_twin, page
from pullback_service.database import ReadSession
from pullback_service.ids import JobId
from pullback_service.jobs import logs
from pullback_service.jobs.queries import job_by_id, list_jobs, result_of
from pullback_service.jobs.schemas import JobState

router = APIRouter(include_in_schema=False)

_MOST_JOBS = 100
_STATES = ("queued", "running", "done", "failed")
COLUMNS = (
    "id", "project", "sha", "suite", "state", "attempts", "machine", "created_at", "finished_at", "failure",
)  # fmt: skip


@dataclass(frozen=True)
class JobsView:
    """The newest jobs, and the fleet."""

    fleet: Fleet
    jobs: tuple[JobLine, ...]
    questions: tuple[Question, ...]
    empty: Empty | None


@dataclass(frozen=True)
class JobView:
    """A job and the end of its log."""

    job: JobLine
    machine: str | None
    report_href: str | None
    log: str
    log_size: int


async def _read_jobs(request: Request, session: ReadSession, state: JobState | None = None) -> JobsView:
    fleet = await fleet_now(session, datetime.now(UTC))
    stored = await list_jobs(session, project=None, commit=None, state=state, before_id=None, limit=_MOST_JOBS)
    answers = [("all", links.jobs(), state is None)]
    answers += [(name, links.jobs(state=name), state == name) for name in _STATES]
    return JobsView(
        fleet=fleet,
        jobs=tuple([await job_line(session, job) for job in stored]),
        questions=(question("state", answers),),
        empty=None if stored else _nothing(state, str(request.base_url).rstrip("/")),
    )


AskedJobs = Annotated[JobsView, Depends(_read_jobs)]


async def _read_job(job_id: int, session: ReadSession) -> JobView:
    stored = await job_by_id(session, JobId(job_id))
    line = await job_line(session, stored)
    piece = await logs.read(session, JobId(job_id), 0, number=None)
    if piece.size > len(piece.content):  # a long log: its last mebibyte is what a person wants to see
        piece = await logs.read(session, JobId(job_id), piece.size - logs.LONGEST_READ, number=piece.attempt)
    report_id = await result_of(session, JobId(job_id))
    fleet = await fleet_now(session, datetime.now(UTC))
    return JobView(
        job=line,
        machine=fleet.machine_of(line),
        report_href=links.report(str(report_id)) if report_id else None,
        log=piece.content.decode("utf-8", "replace"),
        log_size=piece.size,
    )


AskedJob = Annotated[JobView, Depends(_read_job)]


@router.get("/jobs.json")
async def jobs_json(view: AskedJobs) -> Response:
    """The same as JSON."""
    return json_twin(view)


@router.get("/jobs.csv")
async def jobs_csv(view: AskedJobs) -> Response:
    """The table as CSV."""
    return csv_twin("jobs", _table(view), COLUMNS)


@router.get("/jobs")
async def jobs_page(request: Request, view: AskedJobs) -> Response:
    """The page."""
    return page(request, "jobs.html", title="Jobs", view=view, twins=("json", "csv"), live=True)


@router.get("/jobs/{job_id}.json")
async def job_json(view: AskedJob) -> Response:
    """The same as JSON; the whole log is at /api/v1/jobs/{id}/log."""
    return json_twin(view)


@router.get("/jobs/{job_id}")
async def job_page(request: Request, view: AskedJob) -> Response:
    """The page."""
    live = view.job.finished_at is None
    return page(request, "job.html", title=f"Job {view.job.id}", view=view, twins=("json",), live=live)


def _table(view: JobsView) -> Iterator[dict[str, Any]]:
    for job in view.jobs:
        row = {name: getattr(job, name) for name in COLUMNS if name != "machine"}
        yield row | {"machine": view.fleet.machine_of(job)}


def _nothing(state: str | None, base: str) -> Empty:
    if state is not None:
        return Empty(f"No job is {state}", ("The other states are one click away.",))
    return Empty(
        "No job has been asked for",
        ("`pullback up` asks for one by itself; anybody else asks for a commit through the API:",),
        f"curl -X POST {base}/api/v1/jobs -H 'content-type: application/json' \\\n"
        '  -d \'{"project": "pullback", "commit": {"sha": "<40 hex digits>"}, "suite": "quick"}\'',
    )
