"""Finding machines, and what they measured of themselves."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, exists, func, or_, select, true, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.caller import caller_of
from pullback_service.errors import ForbiddenError, MissingObject, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.job_channel import notify_waiting_agents
from pullback_service.machines.noise import CLAIMS, SelfComparison
from pullback_service.models.machines import FactsChange, Machine
from pullback_service.models.reports import Comparison, Report
from pullback_service.models.series import Case
from pullback_service.name_characters import in_plain_sight

MOST_SELF_COMPARISONS = 5_000


async def changes_of(
    session: AsyncSession, machine_id: MachineId, *, before_id: int | None, limit: int
) -> Sequence[FactsChange]:
    """The changes of a machine's facts, the last change first. Index: ix_facts_change_machine_id."""
    statement = select(FactsChange).where(FactsChange.machine_id == machine_id)
    if before_id is not None:
        statement = statement.where(FactsChange.id < before_id)
    return (await session.scalars(statement.order_by(FactsChange.id.desc()).limit(limit))).all()


_BY_NAME: Final = (Machine.name, Machine.fingerprint, func.coalesce(Machine.host, ""))


async def list_machines(session: AsyncSession, *, after_id: int | None, limit: int) -> Sequence[Machine]:
    """Machines in the order of their names. Few rows."""
    statement = select(Machine).order_by(*_BY_NAME).limit(limit)
    if after_id is not None:
        last = (await session.execute(select(*_BY_NAME).where(Machine.id == after_id))).one_or_none()
        if last is None:
            return []
        statement = statement.where(tuple_(*_BY_NAME) > tuple_(*last))
    return (await session.scalars(statement)).all()


def is_called(names: Collection[str]) -> ColumnElement[bool]:
    """True if a machine has one of these names, hosts or classes; a name as it was sent is as good as the one that is shown."""
    named = Machine.name.in_({*names, *map(in_plain_sight, names)})
    return or_(named, Machine.host.in_(names), Machine.fingerprint.in_(names))


async def machine_names(session: AsyncSession, machine_ids: Collection[MachineId]) -> Mapping[MachineId, str]:
    """The names of some machines. Index: pk_machine."""
    if not machine_ids:
        return {}
    rows = await session.execute(select(Machine.id, Machine.name).where(Machine.id.in_(machine_ids)))
    return {MachineId(row.id): row.name for row in rows}


async def machine_by_id(session: AsyncSession, machine_id: MachineId) -> Machine:
    """A machine. Index: pk_machine."""
    row = await session.get(Machine, machine_id)
    if row is None:
        raise _unknown(machine_id)
    return row


async def lock_machine(session: AsyncSession, machine_id: MachineId) -> Machine:
    """A machine that no agent claims jobs for until this transaction ends. Index: pk_machine."""
    row = await session.scalar(
        select(Machine)
        .where(Machine.id == machine_id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    )
    if row is None:
        raise _unknown(machine_id)
    return row


def _unknown(machine_id: int) -> NotFoundError:
    return NotFoundError(
        f"There is no machine {machine_id}: GET /api/v1/machines lists them.",
        missing=MissingObject("machine", str(machine_id)),
    )


@dataclass(frozen=True, slots=True)
class SelfComparisons:
    """The newest comparisons of commits with themselves; `truncated` where there are more in the window."""

    comparisons: Sequence[SelfComparison]
    truncated: bool


@dataclass(frozen=True, slots=True)
class SelfCount:
    """Counts of a metric's comparisons of a commit with itself, and of those that claimed a difference."""

    metric: str
    comparisons: int
    differing: int
    last_at: datetime


async def comparisons_with_itself(
    session: AsyncSession, machine_id: MachineId, *, days: int, metric: str = "time", device: str | None = None
) -> SelfComparisons:
    """The A/A results of a metric on a machine, on one of its devices or on all, newest first. Index: ix_comparison_noise."""
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
                Comparison.metric == metric,
                true() if device is None else func.coalesce(Case.device, "cpu") == device,
                Report.received_at > func.now() - timedelta(days=days),
            )
            .order_by(Comparison.id.desc())
            .limit(MOST_SELF_COMPARISONS + 1)
        )
    ).all()
    results = [
        SelfComparison(row.received_at, row.workload, row.log_ratio, row.group_log_ratios or (), row.outcome)
        for row in rows[:MOST_SELF_COMPARISONS]
    ]
    return SelfComparisons(results, truncated=len(rows) > MOST_SELF_COMPARISONS)


async def change_accepts(session: AsyncSession, machine_id: MachineId, accepts: str) -> tuple[Machine, bool]:
    """Say what trust a machine accepts; the machine, and whether that is news. Index: pk_machine."""
    caller = caller_of(session)
    if caller is not None and caller.projects is not None:
        raise ForbiddenError("Machines serve all projects: use a token that is not limited to one project.")
    machine = await lock_machine(session, machine_id)
    if machine.accepts == accepts:
        return machine, False
    machine.accepts = accepts
    await session.flush()
    await notify_waiting_agents(session)
    return machine, True


async def self_counts(session: AsyncSession, machine_id: MachineId, *, days: int) -> Sequence[SelfCount]:
    """Every metric that A/A looked at on a machine, by name. Index: ix_comparison_noise."""
    rows = await session.execute(
        select(
            Comparison.metric,
            func.count().label("comparisons"),
            func.count().filter(Comparison.outcome.in_(CLAIMS)).label("differing"),
            func.max(Report.received_at).label("last_at"),
        )
        .join(Report, Report.id == Comparison.report_id)
        .where(
            Comparison.machine_id == machine_id,
            Comparison.reference_id == Comparison.candidate_id,
            Comparison.outcome != "failed",
            Report.received_at > func.now() - timedelta(days=days),
        )
        .group_by(Comparison.metric)
        .order_by(Comparison.metric)
    )
    return [SelfCount(*row) for row in rows]


async def newest_self_comparisons(session: AsyncSession, machine_ids: Sequence[MachineId]) -> Mapping[MachineId, int]:
    """The id of the newest A/A comparison of machines, whichever project it is of. Index: ix_comparison_noise."""
    newest = (
        select(func.max(Comparison.id).label("id"))
        .where(Comparison.machine_id == Machine.id, Comparison.reference_id == Comparison.candidate_id)
        .lateral()
    )
    rows = await session.execute(
        select(Machine.id, newest.c.id).join(newest, true()).where(Machine.id.in_(machine_ids))
    )
    return {MachineId(machine_id): comparison_id for machine_id, comparison_id in rows if comparison_id is not None}


async def machines_called(session: AsyncSession, project_id: ProjectId, name: str) -> Sequence[MachineId]:
    """Machines of this name, host or class with reports of a project: of a class there may be several.

    Index: uq_machine_fingerprint_host, few rows; ix_report_project_received.
    """
    reported = exists().where(Report.project_id == project_id, Report.machine_id == Machine.id)
    rows = await session.scalars(select(Machine.id).where(is_called([name]), reported).order_by(*_BY_NAME))
    results = [MachineId(machine_id) for machine_id in rows]
    if not results:
        raise NotFoundError(
            f"No machine {name!r} has results in this project: give the name, the host or the class of one that has.",
            missing=MissingObject("machine", name),
        )
    return results
