"""Reading the newest state of a project."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import TypeAdapter

from pullback_service.addresses import API
from pullback_service.answers import UNCHANGED, KnownAnswering
from pullback_service.commits.naming import branch_by_name
from pullback_service.database import ReadSession
from pullback_service.errors import InvalidInputError, NotFoundError
from pullback_service.fields import Name
from pullback_service.ids import ProjectId
from pullback_service.machines.queries import machines_called
from pullback_service.matrix import queries
from pullback_service.matrix.schemas import WorkloadSummary
from pullback_service.paging import Cursor, Page, read_cursor, write_cursor
from pullback_service.problems import documented
from pullback_service.projects.queries import project_by_name

router = APIRouter(prefix=f"{API}/matrix", tags=["matrix"])

WorkloadPlace = TypeAdapter(tuple[Name])
MOST_WORKLOADS = 100


@router.get(
    "",
    operation_id="read_matrix",
    summary="Newest results, workloads by variants",
    response_model=Page[WorkloadSummary],
    responses={**UNCHANGED, **documented(NotFoundError, InvalidInputError)},
)
async def read_matrix(
    session: ReadSession,
    answer: KnownAnswering,
    project: Annotated[Name, Query(examples=["demo"])],
    machine: Annotated[Name | None, Query(description="Name or fingerprint.")] = None,
    metric: Annotated[Name | None, Query(examples=["time"])] = None,
    branch: Annotated[
        Name | None, Query(description="Only commits among the first parents of this branch.", examples=["main"])
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_WORKLOADS, description="Most workloads of one page.")] = 20,
    cursor: Cursor = None,
) -> Response:
    """Every case of a project, each at the newest commit that has it on that machine, by workload."""
    project_id = ProjectId((await project_by_name(session, project)).id)
    machines = None if machine is None else await machines_called(session, project_id, machine)
    branch_id = None if branch is None else (await branch_by_name(session, project_id, branch)).id
    place = read_cursor(cursor, WorkloadPlace)
    names = await queries.workload_names(session, project_id, after=place[0] if place else None, limit=limit + 1)
    workloads = await queries.matrix_of(
        session, project_id, names[:limit], machines=machines, metric=metric, branch_id=branch_id
    )
    return answer(
        Page[WorkloadSummary](
            items=[WorkloadSummary.of(workload) for workload in workloads],
            next=write_cursor((names[limit - 1],)) if len(names) > limit else None,
        )
    )
