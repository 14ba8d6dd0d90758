"""Finding and making machines, and what they measured of themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.access.visibility import own_projects
from pullback_service.errors import ForbiddenError, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.jobs.bell import ring
from pullback_service.machines.models import Machine
from pullback_service.machines.noise import SelfComparison
from pullback_service.reports.models import Comparison, Report
from pullback_service.series.models import Case

MOST_SELF_COMPARISONS = 5_000
# A machine that is seen all the time need not be written all the time.
SEEN_AGAIN_AFTER_S = 10


async def ensure_machine(session: AsyncSession, fingerprint: str, name: str, facts: Mapping[str, Any]) -> MachineId:
    """The machine with this fingerprint, made or brought up to date. Index: uq_machine_fingerprint."""
    found = await session.scalar(select(Machine.id).where(Machine.fingerprint == fingerprint, ~is_news(name, facts)))
    if found is not None:
        return MachineId(found)
    await session.execute(
        insert(Machine).values(fingerprint=fingerprint, name=name, facts=dict(facts)).on_conflict_do_nothing()
    )
    # Facts that an upload does not tell stay as they were told before.
    await session.execute(
        update(Machine)
        .where(Machine.fingerprint == fingerprint, is_news(name, facts))
        .values(name=name, last_seen_at=func.now(), **({"facts": dict(facts)} if facts else {}))
    )
    statement = select(Machine.id).where(Machine.fingerprint == fingerprint)
    return MachineId((await session.scalars(statement)).one())


def is_news(name: str, facts: Mapping[str, Any]) -> ColumnElement[bool]:
    """Whether a machine must be written for what is told of it: it changed, or was not seen for a while."""
    stale = Machine.last_seen_at < func.now() - func.make_interval(0, 0, 0, 0, 0, 0, SEEN_AGAIN_AFTER_S)
    news = or_(stale, Machine.name != name)
    return or_(news, Machine.facts != dict(facts)) if facts else news


async def list_machines(session: AsyncSession, *, after_id: int | None, limit: int) -> Sequence[Machine]:
    """Machines in the order in which they were first seen. Index: pk_machine."""
    statement = select(Machine).order_by(Machine.id).limit(limit)
    if after_id is not None:
        statement = statement.where(Machine.id > after_id)
    return (await session.scalars(statement)).all()


async def machine_by_id(session: AsyncSession, machine_id: MachineId) -> Machine:
    """A machine. Index: pk_machine."""
    found = await session.get(Machine, machine_id)
    if found is None:
        raise _unknown(machine_id)
    return found


async def lock_machine(session: AsyncSession, machine_id: MachineId) -> Machine:
    """A machine that no agent claims jobs for until this transaction ends. Index: pk_machine."""
    found = await session.scalar(
        select(Machine)
        .where(Machine.id == machine_id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    )
    if found is None:
        raise _unknown(machine_id)
    return found


def _unknown(machine_id: int) -> NotFoundError:
    return NotFoundError(f"There is no machine {machine_id}: GET /api/v1/machines lists those there are.")


@dataclass(frozen=True, slots=True)
class SelfComparisons:
    """The newest comparisons of commits with themselves; `truncated` where there are more in the window."""

    comparisons: Sequence[SelfComparison]
    truncated: bool


async def comparisons_with_itself(session: AsyncSession, machine_id: MachineId, *, days: int) -> SelfComparisons:
    """What A/A found of time on a machine, newest first. Index: ix_comparison_noise."""
    rows = (
        await session.execute(
            select(
                Report.received_at,
                Case.workload,
                Comparison.log_ratio,
                Comparison.group_log_ratios,
                Comparison.outcome,
            )
            .join(Report, Report.id == Comparison.report_id)
            .join(Case, Case.id == Comparison.case_id)
            .where(
                Comparison.machine_id == machine_id,
                Comparison.reference_id == Comparison.candidate_id,
                Comparison.metric == "time",
                Report.received_at > func.now() - func.make_interval(0, 0, 0, days),
            )
            .order_by(Comparison.id.desc())
            .limit(MOST_SELF_COMPARISONS + 1)
        )
    ).all()
    found = [
        SelfComparison(row.received_at, row.workload, row.log_ratio, row.group_log_ratios or (), row.outcome)
        for row in rows[:MOST_SELF_COMPARISONS]
    ]
    return SelfComparisons(found, truncated=len(rows) > MOST_SELF_COMPARISONS)


async def change_accepts(session: AsyncSession, machine_id: MachineId, accepts: str) -> tuple[Machine, bool]:
    """Say what trust a machine accepts; the machine, and whether that is news. Index: pk_machine."""
    if own_projects(session) is not None:
        raise ForbiddenError("Machines serve all projects: use a token that is not limited to one.")
    machine = await lock_machine(session, machine_id)
    if machine.accepts == accepts:
        return machine, False
    machine.accepts = accepts
    await session.flush()
    await ring(session)
    return machine, True


async def machines_called(session: AsyncSession, project_id: ProjectId, name: str) -> Sequence[MachineId]:
    """Machines of this name or fingerprint with reports of a project: a name may be that of several.

    Index: uq_machine_fingerprint, few rows; ix_report_project_received.
    """
    reported = exists().where(Report.project_id == project_id, Report.machine_id == Machine.id)
    rows = await session.scalars(
        select(Machine.id).where(or_(Machine.name == name, Machine.fingerprint == name), reported).order_by(Machine.id)
    )
    found = [MachineId(machine_id) for machine_id in rows]
    if not found:
        raise NotFoundError(
            f"No machine {name!r} has reported to this project: give the name or the fingerprint of one that has."
        )
    return found
