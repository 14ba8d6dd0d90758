"""Listing machines, saying what they accept, and how noisy they are."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.audit.trail import note
from pullback_service.endpoints.tables import MACHINES, facts_of
from pullback_service.errors import ForbiddenError, InvalidInputError, NotFoundError
from pullback_service.fields import KnownId, Name
from pullback_service.ids import MachineId
from pullback_service.listing import LISTED, KnownListing
from pullback_service.machines import queries
from pullback_service.machines.dependencies import KnownNoise
from pullback_service.machines.schemas import (
    DayNoise,
    FactsChange,
    MachineChange,
    MachineNoise,
    MachineSummary,
    MetricNoise,
    WorkloadNoise,
)
from pullback_service.paging import Page, id_in, page_of
from pullback_service.problems import documented
from pullback_service.routers import api_router
from pullback_service.sessions import ReadSession, WriteSession

router = api_router(prefix=f"{API}/machines", tags=["machines"])


@router.get("", response_model=Page[MachineSummary], responses=LISTED)
async def list_machines(listing: KnownListing) -> Response:
    """Machines in the order of their names."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[MachineSummary]:
        rows = await queries.list_machines(session, after_id=id_in(cursor), limit=limit + 1)
        return page_of(rows, limit, item=MachineSummary.model_validate, key=lambda row: (row.id,))

    return await listing.give(read, MACHINES)


@router.patch("/{machine_id}", responses=documented(ForbiddenError, NotFoundError, InvalidInputError))
async def change_machine(change: MachineChange, session: WriteSession, machine_id: KnownId) -> MachineSummary:
    """Say whether a machine runs untrusted jobs: approved ones of forks. What it is at work on is not touched."""
    machine, is_news = await queries.change_accepts(session, MachineId(machine_id), change.accepts)
    note(session, changed=is_news, subject=f"machine {machine_id}", accepts=change.accepts)
    return MachineSummary.model_validate(machine)


@router.get("/{machine_id}/noise", responses=documented(NotFoundError, InvalidInputError))
async def read_noise(
    session: ReadSession,
    machine_id: KnownId,
    memory: KnownNoise,
    days: Annotated[int, Query(ge=1, le=3650, description="Number of days to look back.")] = 90,
    metric: Annotated[
        Name, Query(description="A noisy metric; of exact ones `metrics` says how often they differed.")
    ] = "time",
) -> MachineNoise:
    """Read the noise of a machine: the differences between two runs of one commit, by its A/A comparisons."""
    machine = await queries.machine_by_id(session, MachineId(machine_id))
    window_noise = (await memory.of(session, [MachineId(machine_id)], days=days, metric=metric))[MachineId(machine_id)]
    counts = await queries.self_counts(session, MachineId(machine_id), days=days)
    return MachineNoise(
        **asdict(window_noise.noise.all),
        machine=machine.name,
        metric=metric,
        days=days,
        truncated=window_noise.truncated,
        workloads=[WorkloadNoise(**asdict(noise), workload=name) for name, noise in window_noise.noise.workloads],
        history=[DayNoise(**asdict(noise), day=day) for day, noise in window_noise.noise.history],
        metrics=[MetricNoise.model_validate(count) for count in counts],
    )


@router.get(
    "/{machine_id}/changes", response_model=Page[FactsChange], responses={**LISTED, **documented(NotFoundError)}
)
async def list_machine_changes(session: ReadSession, listing: KnownListing, machine_id: KnownId) -> Response:
    """List the changes of a machine's facts, the last change first: another kernel, another NumPy, another name."""
    machine = await queries.machine_by_id(session, MachineId(machine_id))

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[FactsChange]:
        rows = await queries.changes_of(session, MachineId(machine_id), before_id=id_in(cursor), limit=limit + 1)
        return page_of(rows, limit, item=FactsChange.model_validate, key=lambda row: (row.id,))

    return await listing.give(read, facts_of(machine), name=f"machine-{machine_id}")
