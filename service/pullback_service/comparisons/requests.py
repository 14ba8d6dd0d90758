"""A requested comparison, by the names that people give, and its result: two commits, or two machines."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.background_threads import large_reads
from pullback_service.comparisons import queries
from pullback_service.comparisons.compared_commits import (
    MANY_POINTS,
    ComparedCommits,
    find_compared_commits,
    missing_series,
)
from pullback_service.comparisons.judgement_inputs import MachinePair
from pullback_service.comparisons.queries import CommitComparison
from pullback_service.errors import refuse
from pullback_service.ids import MachineId, ProjectId
from pullback_service.machines.queries import machines_called
from pullback_service.projects.queries import project_by_name
from pullback_service.series.filters import SeriesChoice


@dataclass(frozen=True)
class ComparisonRequest:
    """A requested comparison, as an address names it.

    `head` is judged, `base` is what it is compared with; with `base_machine`, what that machine measured is compared with
    what `head_machine` did, at one commit unless `base` names another. `head_machine` alone chooses its series.
    """

    head: str
    base: str | None = None
    merge_base: bool = False
    head_machine: str | None = None
    base_machine: str | None = None
    choice: SeriesChoice = field(default_factory=SeriesChoice)


@dataclass(frozen=True, slots=True)
class ComparisonAnswer:
    """The two commits, what was judged of every chosen series, and what to know about both."""

    project_id: ProjectId
    pair: ComparedCommits
    judged: CommitComparison
    notes: Sequence[str]


async def compare_as_asked(session: AsyncSession, project: str, request: ComparisonRequest) -> ComparisonAnswer:
    """The comparison that is asked for. Index: as `find_compared_commits`, `machines_called` and `queries.compare`."""
    project_id = ProjectId((await project_by_name(session, project)).id)
    across = await _across(session, project_id, request)
    pair = await find_compared_commits(
        session,
        project_id,
        request.base,
        request.head,
        merge_base=request.merge_base,
        two_machines=across is not None,
    )
    machine = [request.head_machine] if request.head_machine and across is None else request.choice.machine
    choice = replace(request.choice, project=project, machine=() if across is not None else machine)
    async with large_reads.after(session) if pair.points > MANY_POINTS else nullcontext():
        judged = await queries.compare(session, pair.reference.commit, pair.candidate.commit, choice, across=across)
    missing = [] if across is not None else await missing_series(session, project_id, pair, judged.outcomes)
    return ComparisonAnswer(project_id, pair, judged, [*pair.notes, *missing, *_unprojected(pair)])


def _unprojected(pair: ComparedCommits) -> Sequence[str]:
    """A note about commits that an earlier release stored and no worker has projected yet."""
    waiting = [commit.sha for commit in (pair.reference.commit, pair.candidate.commit) if not commit.projected]
    return [
        f"Results of {sha} are being prepared after an upgrade and may be incomplete." for sha in dict.fromkeys(waiting)
    ]


async def _across(session: AsyncSession, project_id: ProjectId, request: ComparisonRequest) -> MachinePair | None:
    if not request.base_machine or request.base_machine == request.head_machine:
        return None
    if not request.head_machine:
        refuse("head_machine", "Two machines are compared: give head_machine too.")
    return MachinePair(
        await _machine(session, project_id, request.base_machine, where="base_machine"),
        await _machine(session, project_id, request.head_machine, where="head_machine"),
    )


async def _machine(session: AsyncSession, project_id: ProjectId, name: str, *, where: str) -> MachineId:
    listed = await machines_called(session, project_id, name)
    if len(listed) > 1:
        refuse(where, f"{len(listed)} machines are called {name!r}: give the host or the class of one.")
    return listed[0]
