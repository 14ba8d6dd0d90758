"""`/fleet`: machines and their agents, and how the service is doing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from pullback_dashboards.choices import EmptyPage
from pullback_dashboards.current_project import coming_from
from pullback_dashboards.fleet.sources import machine_lines
from pullback_dashboards.fleet.view import MachineLine
from pullback_dashboards.rendering import csv_response, page, page_at
from pullback_dashboards.routers import page_router
from pullback_service.current_settings import base_of
from pullback_service.machines.dependencies import KnownNoise
from pullback_service.rows_to_models import filled
from pullback_service.sessions import ReadSession
from pullback_service.status.queries import read_status

router = page_router()

COLUMNS = (
    "machine", "hardware", "state", "agents", "jobs", "noise_floor", "provisional", "last_results", "spool_waiting", "last_seen_at",
)  # fmt: skip


@dataclass(frozen=True)
class ChoreLine:
    """Chores of one kind; ages in seconds, of the oldest that waits or runs and of the newest that failed."""

    task: str
    waiting: int
    waiting_s: float | None
    running: int
    running_s: float | None
    failed: int
    failed_s: float | None


@dataclass(frozen=True)
class ServiceLine:
    """The state of the service: in one word, in sentences with remedies, and the work of its workers."""

    well: bool
    findings: tuple[str, ...]
    workers: int
    chores_waiting: int
    chores: tuple[ChoreLine, ...]


@dataclass(frozen=True)
class FleetView:
    """Machines, and the service they work for."""

    words: str
    machines: tuple[MachineLine, ...]
    waiting: int
    service: ServiceLine
    empty: EmptyPage | None


async def _read(request: Request, session: ReadSession, memory: KnownNoise) -> FleetView:
    machines = await machine_lines(session, memory)
    status = await read_status(session)
    waiting = status.jobs.by_state.get("queued", 0)
    return FleetView(
        words=in_words(machines, waiting),
        machines=machines,
        waiting=waiting,
        service=ServiceLine(
            well=status.status == "well",
            findings=tuple(status.findings),
            workers=status.workers,
            chores_waiting=sum(chore.waiting for chore in status.chores),
            chores=tuple(filled(ChoreLine, chore) for chore in status.chores),
        ),
        empty=None if machines else nobody_yet(base_of(request)),
    )


RequestedView = Annotated[FleetView, Depends(_read)]


@page_at(router, "/fleet", RequestedView, csv=lambda view: csv_response("fleet", _table(view), COLUMNS))
async def fleet_page(request: Request, session: ReadSession, view: RequestedView) -> Response:
    """The page."""
    kept = await coming_from(session, request)
    return page(
        request,
        "fleet.html",
        title="Fleet",
        view=view,
        coming_from=kept,
        formats=("json", "csv", "md"),
        scripts=("live.js", *(["copy.js"] if view.empty else [])),
    )


def _table(view: FleetView) -> Iterator[dict[str, Any]]:
    for machine in view.machines:
        yield {
            "machine": machine.name,
            "hardware": machine.hardware,
            "state": machine.state,
            "agents": ", ".join(agent.name for agent in machine.agents),
            "jobs": " ".join(str(agent.job_id) for agent in machine.agents if agent.job_id),
            "noise_floor": machine.noise.floor_value,
            "provisional": machine.noise.provisional,
            "last_results": machine.quality.words,
            "spool_waiting": sum(agent.spool_waiting or 0 for agent in machine.agents) if machine.agents else None,
            "last_seen_at": machine.last_seen_at,
        }


def in_words(machines: tuple[MachineLine, ...], waiting: int) -> str:
    """The fleet in a sentence: how many machines do what, and how much waits."""
    states = [machine.state for machine in machines]
    told = [
        f"{states.count(state)} {word}"
        for state, word in (
            ("at work", "at work"),
            ("idle", "idle"),
            ("takes no jobs", "not taking jobs"),
            ("silent", "silent"),
            ("no agent", "without an agent"),
        )
        if state in states
    ]
    count = f"{len(machines)} {'machine' if len(machines) == 1 else 'machines'}"
    jobs = "no jobs waiting" if not waiting else f"{waiting} {'job' if waiting == 1 else 'jobs'} waiting"
    return f"{count}: {', '.join(told)}; {jobs}." if machines else f"No machines yet; {jobs}."


def nobody_yet(base: str) -> EmptyPage:
    """The next step where no machine was heard of."""
    return EmptyPage(
        "No machines yet",
        ("An agent takes jobs and measures them on its machine. Start one in a checkout of the project:",),
        f"pullback agent --server {base} --repository .",
    )
