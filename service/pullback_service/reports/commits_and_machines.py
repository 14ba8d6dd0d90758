"""The commits and machines of reports, made where they are missing."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.commits.queries import CommitDescription, PlacedCommit, ensure_told
from pullback_service.ids import MachineId, ProjectId
from pullback_service.machines.registration import MachineDescription, ensure_machine
from pullback_service.reports.schemas import ReportHead


@dataclass(frozen=True, slots=True)
class CommitAndMachine:
    """The machine that measured a report, and the commit it speaks of."""

    machine_id: MachineId
    commit: PlacedCommit


async def place(
    session: AsyncSession, project_id: ProjectId, heads: Sequence[ReportHead], known: Sequence[MachineId | None]
) -> list[CommitAndMachine]:
    """The place of each report of a project. Machines that were `known` need no writing."""
    machines = list(known)
    told = [
        MachineDescription(each.fingerprint, each.host, each.name, each.facts)
        for each in (head.machine for head in heads)
    ]
    in_one_order = sorted(
        range(len(heads)), key=lambda at: (told[at].fingerprint, told[at].host or "")
    )  # for everybody
    for at in in_one_order:
        if machines[at] is None:
            machines[at] = await ensure_machine(session, told[at])
    commits = await ensure_told(session, project_id, [CommitDescription.of(head.commit) for head in heads])
    return [
        CommitAndMachine(machine_id, commits[head.commit.sha])
        for machine_id, head in zip(machines, heads, strict=True)
        if machine_id is not None
    ]
