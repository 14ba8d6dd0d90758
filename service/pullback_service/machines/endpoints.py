"""Listing machines, saying what they accept, and how noisy they are."""

from dataclasses import asdict
from datetime import UTC
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import TypeAdapter

from pullback_service.addresses import API
from pullback_service.audit.keeping import note, note_nothing
from pullback_service.database import ReadSession, WriteSession
from pullback_service.errors import ForbiddenError, InvalidInputError, NotFoundError
from pullback_service.fields import KnownId
from pullback_service.ids import MachineId
from pullback_service.machines import queries
from pullback_service.machines.noise import noise_by, noise_of
from pullback_service.machines.schemas import DayNoise, MachineChange, MachineNoise, MachineSummary, WorkloadNoise
from pullback_service.paging import Cursor, Limit, Page, page_of, read_cursor
from pullback_service.problems import documented

router = APIRouter(prefix=f"{API}/machines", tags=["machines"])

Place = TypeAdapter(tuple[KnownId])


@router.get("", responses=documented(InvalidInputError))
async def list_machines(session: ReadSession, limit: Limit = 100, cursor: Cursor = None) -> Page[MachineSummary]:
    """Machines in the order in which they were first seen."""
    place = read_cursor(cursor, Place)
    rows = await queries.list_machines(session, after_id=place[0] if place else None, limit=limit + 1)
    return page_of(rows, limit, item=MachineSummary.model_validate, key=lambda row: (row.id,))


@router.patch("/{machine_id}", responses=documented(ForbiddenError, NotFoundError, InvalidInputError))
async def change_machine(change: MachineChange, session: WriteSession, machine_id: KnownId) -> MachineSummary:
    """Say whether a machine runs untrusted jobs: approved ones of forks. What it is at work on is not touched."""
    machine, is_news = await queries.change_accepts(session, MachineId(machine_id), change.accepts)
    if is_news:
        note(session, subject=f"machine {machine_id}", accepts=change.accepts)
    else:
        note_nothing(session)
    return MachineSummary.model_validate(machine)


@router.get("/{machine_id}/noise", responses=documented(NotFoundError, InvalidInputError))
async def read_noise(
    session: ReadSession,
    machine_id: KnownId,
    days: Annotated[int, Query(ge=1, le=3650, description="How far back to look.")] = 90,
) -> MachineNoise:
    """How far two runs of one commit come apart on a machine, by its A/A comparisons."""
    machine = await queries.machine_by_id(session, MachineId(machine_id))
    found = await queries.comparisons_with_itself(session, MachineId(machine_id), days=days)
    return MachineNoise(
        **asdict(noise_of(found.comparisons)),
        machine=machine.name,
        days=days,
        truncated=found.truncated,
        workloads=[
            WorkloadNoise(**asdict(noise), workload=name)
            for name, noise in noise_by(found.comparisons, lambda comparison: comparison.workload)
        ],
        history=[
            DayNoise(**asdict(noise), day=day)
            for day, noise in noise_by(found.comparisons, lambda comparison: comparison.at.astimezone(UTC).date())
        ],
    )
