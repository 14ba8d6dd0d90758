"""The newest state of a project, some workloads at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.background_threads import in_background
from pullback_service.errors import InvalidInputError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.models.series import Case, natural
from pullback_service.series.queries import (
    MOST_MATRIX_POINTS,
    CaseFacts,
    CommitFacts,
    FailedCase,
    MachineFacts,
    Matrix,
    MeasuredCell,
    latest_matrix,
)


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A case on a machine: its cells at the newest commit that has any, and what failed there or since.

    `commit` is None for a case that never gave a measurement.
    """

    case: CaseFacts
    machine: MachineFacts
    commit: CommitFacts | None
    cells: Sequence[MeasuredCell]
    failures: Sequence[FailedCase]


@dataclass(frozen=True, slots=True)
class MatrixWorkload:
    """A workload and the rows of its cases, in the order of their names."""

    workload: str
    rows: Sequence[MatrixRow]


async def workload_names(
    session: AsyncSession, project_id: ProjectId, *, after: str | None, limit: int
) -> Mapping[str, int]:
    """Names of workloads in order, each with the number of its cases. Index: ix_case_workload."""
    statement = select(Case.workload, func.count()).where(Case.project_id == project_id)
    if after is not None:
        statement = statement.where(Case.workload > after)
    rows = await session.execute(statement.group_by(Case.workload).order_by(Case.workload).limit(limit))
    return dict(rows.all())


async def matrix_of(
    session: AsyncSession,
    project_id: ProjectId,
    workloads: Sequence[str],
    *,
    machines: Sequence[MachineId] | None = None,
    metric: str | None = None,
    branch_id: int | None = None,
) -> Sequence[MatrixWorkload]:
    """The newest state of some workloads, in the order given. Index: as `latest_matrix`."""
    matrix = await latest_matrix(
        session, project_id, machines=machines, workloads=workloads, metric=metric, branch_id=branch_id
    )
    if not matrix.complete:
        raise InvalidInputError(
            f"These {len(workloads)} workloads have more than {MOST_MATRIX_POINTS} points: ask for fewer with limit=, or "
            "for one machine= or metric=."
        )
    return await in_background(_by_workload, matrix, workloads)


def _by_workload(matrix: Matrix, workloads: Sequence[str]) -> Sequence[MatrixWorkload]:
    failures: dict[tuple[int, int], list[FailedCase]] = {}
    for failure in matrix.failures:
        failures.setdefault((failure.case.id, failure.machine.id), []).append(failure)
    rows = [
        MatrixRow(cells[0].case, cells[0].machine, cells[0].commit, cells, failures.pop(key, ()))
        for key, cells in (
            (key, list(group))
            for key, group in groupby(
                sorted(matrix.cells, key=lambda cell: (cell.case.id, cell.machine.id)),
                key=lambda cell: (cell.case.id, cell.machine.id),
            )
        )
    ]
    rows += [MatrixRow(failed[0].case, failed[0].machine, None, (), failed) for failed in failures.values()]
    rows.sort(key=lambda row: (natural(row.case.label), row.machine.name, row.machine.fingerprint))
    of_workloads: dict[str, list[MatrixRow]] = {name: [] for name in workloads}
    for row in rows:
        of_workloads[row.case.workload].append(row)
    return [MatrixWorkload(*each) for each in of_workloads.items()]
