"""`/jobs`: the queue."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.choices import EmptyPage, question
from pullback_dashboards.current_project import coming_from
from pullback_dashboards.fleet.sources import MOST_MACHINES, fleet_now, job_lines
from pullback_dashboards.fleet.view import JobLine
from pullback_dashboards.page_state import FormParameter
from pullback_dashboards.queue.view import Filters, QueueView, running_lines, waiting_lines
from pullback_dashboards.rendering import csv_response, page, page_at
from pullback_dashboards.routers import page_router
from pullback_dashboards.wording.plurals import counted
from pullback_service.current_settings import base_of
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.fields import LARGEST_ID
from pullback_service.jobs.forecast_inputs import outlook
from pullback_service.jobs.queries import ACTIVE, JobChoice, count_jobs, list_jobs, waiting_jobs
from pullback_service.jobs.schemas import JobOrigin
from pullback_service.machines.queries import list_machines
from pullback_service.projects.queries import list_projects
from pullback_service.sessions import ReadSession

router = page_router()

WAITING_ON_A_PAGE = 50
ENDED_ON_A_PAGE = 25
_MOST_RUNNING = 100
ENDED = ("done", "failed", "cancelled", "lost")
JobFilter = Literal["queued", "running", "done", "failed", "cancelled", "lost"]
COLUMNS = (
    "id", "project", "sha", "suite", "kind", "state", "asked_by", "attempts", "machine", "created_at", "finished_at",
    "starts_in_s", "takes_s", "remaining_s", "why", "failure",
)  # fmt: skip


@dataclass(frozen=True)
class State:
    """Everything that the address of the page decides."""

    state: JobFilter | None = None
    project: FormParameter[str] = None
    suite: FormParameter[str] = None
    machine: FormParameter[str] = None
    origin: FormParameter[JobOrigin] = None
    page: Annotated[int, Query(ge=1, le=1_000_000, description="Waiting jobs come fifty on a page.")] = 1
    before: Annotated[int | None, Query(ge=1, le=LARGEST_ID, description="Ended jobs older than this one.")] = None
    via: FormParameter[str] = None

    def href(self, **changes: str | int | None) -> str:
        """The address of this state with some of it changed."""
        changed = {**self.__dict__, "page": 1, "before": None, **changes}
        if changed["page"] == 1:
            changed["page"] = None
        return links.jobs(**{name: None if value is None else str(value) for name, value in changed.items()})


RequestedState = Annotated[State, Depends()]


async def _read(request: Request, session: ReadSession, state: RequestedState) -> QueueView:
    machines = await list_machines(session, after_id=None, limit=MOST_MACHINES)
    ids = {machine.name: machine.id for machine in machines}
    if state.machine is not None and state.machine not in ids:
        raise NotFoundError(
            f"There is no machine {state.machine!r}: GET /api/v1/machines lists them.",
            missing=MissingObject("machine", state.machine),
        )
    fleet = await fleet_now(session)
    choice = JobChoice(
        project=state.project,
        suite=state.suite,
        origin=state.origin,
        machine_id=None if state.machine is None else ids[state.machine],
    )
    counts = await count_jobs(session, choice)
    seen = await outlook(session)
    running = await _running(session, choice) if state.state in {None, "running"} else ()
    skip = (state.page - 1) * WAITING_ON_A_PAGE
    waiting: tuple[JobLine, ...] = ()
    if state.state in {None, "queued"} and state.before is None:
        listed = await waiting_jobs(session, choice, seen.waiting, skip=skip, limit=WAITING_ON_A_PAGE)
        if not listed and state.page > 1:
            raise NotFoundError(
                f"There is no page {state.page}: {counted(counts.get('queued', 0), 'job')} waiting; go to an earlier page.",
                missing=MissingObject("page", str(state.page)),
            )
        waiting = await job_lines(session, listed)
    ended, older = await _ended(session, choice, state) if state.state not in {"queued", "running"} else ((), None)
    waiting_count = counts.get("queued", 0)
    last = skip + len(waiting)
    return QueueView(
        fleet=fleet,
        filters=Filters(
            state.state,
            state.project,
            state.suite,
            state.machine,
            state.origin,
            tuple(project.name for project in await list_projects(session)),
            tuple(sorted(ids)),
        ),
        questions=(question("state", _states(state, counts)),),
        running=running_lines(running, seen),
        waiting=waiting_lines(waiting, seen),
        waiting_count=waiting_count,
        first=skip + 1,
        ended=ended,
        earlier_href=state.href(page=state.page - 1) if state.page > 1 else None,
        later_href=state.href(page=state.page + 1) if waiting and last < waiting_count else None,
        older_href=None if older is None else state.href(before=older),
        clear_href=links.jobs(state=state.state, via=state.via),
        empty=None if running or waiting or ended else _nothing(state, base_of(request)),
    )


RequestedView = Annotated[QueueView, Depends(_read)]


@page_at(router, "/jobs", RequestedView, csv=lambda view: csv_response("jobs", _table(view), COLUMNS))
async def jobs_page(request: Request, session: ReadSession, view: RequestedView) -> Response:
    """The page."""
    kept = await coming_from(session, request)
    return page(
        request,
        "jobs.html",
        title="Jobs",
        view=view,
        coming_from=kept,
        formats=("json", "csv", "md"),
        scripts=("live.js", *(["copy.js"] if view.empty else [])),
    )


async def _running(session: AsyncSession, choice: JobChoice) -> tuple[JobLine, ...]:
    listed = await list_jobs(session, before_id=None, limit=_MOST_RUNNING, choice=replace(choice, states=ACTIVE))
    return await job_lines(session, sorted(listed, key=lambda stored: stored.job.id))


async def _ended(session: AsyncSession, choice: JobChoice, state: State) -> tuple[tuple[JobLine, ...], int | None]:
    """A page of jobs that have ended, newest first, and the last of them where older ones follow."""
    states = ENDED if state.state is None else (state.state,)
    listed = await list_jobs(
        session, before_id=state.before, limit=ENDED_ON_A_PAGE + 1, choice=replace(choice, states=states)
    )
    visible_rows = await job_lines(session, listed[:ENDED_ON_A_PAGE])
    return visible_rows, visible_rows[-1].id if len(listed) > ENDED_ON_A_PAGE else None


def _states(current: State, counts: Any) -> Iterator[tuple[str, str, bool]]:
    """The states as links, each with how many jobs there are; those that nobody is in are left out unless chosen."""
    yield "all", current.href(state=None), current.state is None
    for name in ("queued", "running", *ENDED):
        count = sum(counts.get(state, 0) for state in (ACTIVE if name == "running" else (name,)))
        if count or name in {"queued", "running", current.state}:
            yield f"{name} {count}", current.href(state=name), current.state == name


def _table(view: QueueView) -> Iterator[dict[str, Any]]:
    """One row a job, in the order of the page."""
    for running in view.running:
        yield _row(running.job) | {"remaining_s": running.remaining_s}
    for waiting in view.waiting:
        told = {"starts_in_s": waiting.starts_in_s, "takes_s": waiting.takes_s, "why": waiting.why}
        yield _row(waiting.job) | told
    yield from map(_row, view.ended)


def _row(job: JobLine) -> dict[str, Any]:
    return {name: getattr(job, name) for name in COLUMNS if hasattr(job, name)}


def _nothing(state: State, base: str) -> EmptyPage:
    if any((state.project, state.suite, state.machine, state.origin)):
        return EmptyPage("No jobs match", ("Remove a filter.",))
    if state.state is not None:
        words = {"queued": "No jobs waiting", "running": "No jobs running"}
        return EmptyPage(words.get(state.state, f"No jobs {state.state}"), ("Choose another state.",))
    return EmptyPage(
        "No jobs yet",
        ("`pullback up` creates jobs automatically. To create one by hand, in a checkout of the project:",),
        f"export PULLBACK_SERVER={base}\npullback job create --project NAME --suite quick",
    )
