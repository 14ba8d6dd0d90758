"""`/machines/{id}`: one machine."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Depends, Query, Request, Response

from pullback_dashboards.current_project import ComingFrom
from pullback_dashboards.fleet.sources import NOISE_DAYS, RESULTS, agent_line, job_lines, machine_line
from pullback_dashboards.machine.view import MachineView, facts_changes, machine_view
from pullback_dashboards.rendering import csv_response, page, page_at
from pullback_dashboards.routers import page_router
from pullback_service.agents.queries import agents_on
from pullback_service.current_settings import base_of
from pullback_service.fields import KnownId
from pullback_service.ids import MachineId
from pullback_service.jobs.queries import JobChoice, list_jobs
from pullback_service.machines.dependencies import KnownNoise
from pullback_service.machines.queries import changes_of, machine_by_id, self_counts
from pullback_service.reports.queries import newest_of_machines
from pullback_service.sessions import ReadSession

router = page_router()

COLUMNS = ("name", "floor", "provisional", "groups", "comparisons", "false_alarms")
_MOST_CHANGES = 50
_MOST_JOBS = 20
_MOST_REPORTS = 20
_NOISY = "time"


async def _read(
    request: Request,
    machine_id: KnownId,
    session: ReadSession,
    memory: KnownNoise,
    coming_from: ComingFrom,
    days: Annotated[int, Query(ge=1, le=3650, description="Number of days of noise to show.")] = NOISE_DAYS,
) -> MachineView:
    known = MachineId(machine_id)
    machine = await machine_by_id(session, known)
    agents = [agent_line(seen) for seen in await agents_on(session, known)]
    counts = await self_counts(session, known, days=days)
    noise = (await memory.of(session, [known], days=days, metric=_NOISY))[known]
    reports = (await newest_of_machines(session, [known], limit=_MOST_REPORTS)).get(known, ())
    jobs = await list_jobs(session, before_id=None, limit=_MOST_JOBS, choice=JobChoice(machine_id=machine_id))
    results = [(each.report.quality, each.report.failures) for each in reports[:RESULTS]]
    return machine_view(
        machine_line(machine, agents, noise, results),
        machine,
        window_noise=noise,
        counts=counts,
        days=days,
        coming_from=coming_from,
        changes=facts_changes(await changes_of(session, known, before_id=None, limit=_MOST_CHANGES)),
        jobs=await job_lines(session, jobs),
        reports=reports,
        base=base_of(request),
    )


RequestedView = Annotated[MachineView, Depends(_read)]


@page_at(
    router,
    "/machines/{machine_id}",
    RequestedView,
    csv=lambda view: csv_response(
        f"{view.line.name}-noise", [asdict(row) | {"floor": row.floor_value} for row in view.history], COLUMNS
    ),
)
async def machine_page(request: Request, view: RequestedView, coming_from: ComingFrom) -> Response:
    """The page."""
    return page(
        request,
        "machine.html",
        title=view.line.name,
        view=view,
        coming_from=coming_from,
        formats=("json", "csv", "md"),
        scripts=("live.js", "copy.js"),
    )
