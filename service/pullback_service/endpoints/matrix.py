"""Reading the newest state of a project."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Annotated

import orjson
from fastapi import Query, Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.background_threads import in_background, large_reads
from pullback_service.commits.ref_names import branch_by_name
from pullback_service.conditional_requests import UNCHANGED, KnownAnswering
from pullback_service.errors import InvalidInputError, NotAcceptableError, NotFoundError
from pullback_service.exports.media_types import EXPORTED
from pullback_service.exports.streaming import in_batches, send
from pullback_service.fields import Name
from pullback_service.ids import ProjectId
from pullback_service.machines.queries import machines_called
from pullback_service.matrix import queries
from pullback_service.matrix.schemas import WorkloadSummary, plain_workload
from pullback_service.matrix.tables import MATRIX, ExportedCell, exported_cells
from pullback_service.paging import Cursor, Page, read_cursor, write_cursor
from pullback_service.problems import documented
from pullback_service.projects.queries import project_by_name
from pullback_service.routers import api_router
from pullback_service.sessions import ExportForm, OpenedFile, ReadSession

router = api_router(prefix=f"{API}/matrix", tags=["matrix"])

WorkloadPlace = TypeAdapter(tuple[Name])
MOST_WORKLOADS = 100
MANY_CASES = 1_000
"""Cases of a page from which its cells take 10 MiB and half a second: such pages are rendered one at a time."""


@router.get(
    "",
    operation_id="read_matrix",
    summary="Newest results, workloads by variants",
    response_model=Page[WorkloadSummary],
    responses={**EXPORTED, **UNCHANGED, **documented(NotFoundError, InvalidInputError, NotAcceptableError)},
)
async def read_matrix(
    answer: KnownAnswering,
    form: ExportForm,
    session: ReadSession,
    opened: OpenedFile,
    project: Annotated[Name, Query(examples=["demo"])],
    machine: Annotated[Name | None, Query(description="Name, host or class.")] = None,
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

    async def names(session: AsyncSession, after: str | None) -> tuple[Mapping[str, int], str | None]:
        found = await queries.workload_names(session, project_id, after=after, limit=limit + 1)
        names = dict(islice(found.items(), limit))
        return names, [*names][-1] if len(found) > limit else None

    async def matrix(session: AsyncSession, workloads: Collection[str]) -> Sequence[queries.MatrixWorkload]:
        return await queries.matrix_of(
            session, project_id, [*workloads], machines=machines, metric=metric, branch_id=branch_id
        )

    async def read(session: AsyncSession, after: str | None) -> tuple[Sequence[ExportedCell], str | None]:
        named, following = await names(session, after)
        return list(exported_cells(project, await matrix(session, named))), following

    if form is not None:
        return await send(form, MATRIX, in_batches(session, opened, read), name=project, headers=answer.headers)
    place = read_cursor(cursor, WorkloadPlace)
    named, following = await names(session, place[0] if place else None)
    rest = None if following is None else write_cursor((following,))

    def written() -> bytes:
        # Workload by workload: JSON of thousands of cells at once keeps the event loop waiting for 40 ms, and all are objects until then.
        items = b",".join(orjson.dumps(plain_workload(each), option=orjson.OPT_UTC_Z) for each in result)
        return b'{"items":[' + items + b'],"next":' + orjson.dumps(rest) + b"}"

    async with large_reads.after(session) if sum(named.values()) > MANY_CASES else nullcontext():
        result = await matrix(session, named)
        return await in_background(lambda: answer.written(written()))
