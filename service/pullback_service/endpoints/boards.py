"""Making, reading and changing boards, and pinning to them."""

from typing import Any, Literal
from uuid import UUID

from fastapi import Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.access.authentication import KnownCaller
from pullback_service.addresses import API
from pullback_service.audit.trail import note
from pullback_service.boards import queries
from pullback_service.boards.queries import Pin, StoredBoard
from pullback_service.boards.schemas import (
    BoardChange,
    BoardDetail,
    BoardRequest,
    BoardSummary,
    ChartChange,
    ChartRequest,
    ChartSummary,
    PinReceipt,
)
from pullback_service.caller import Caller
from pullback_service.endpoints.tables import BOARDS
from pullback_service.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from pullback_service.fields import KnownId, Name
from pullback_service.ids import ProjectId
from pullback_service.listing import LISTED, KnownListing
from pullback_service.paging import Page, page_of, read_cursor
from pullback_service.problems import documented
from pullback_service.projects.queries import project_by_name
from pullback_service.routers import api_router
from pullback_service.sessions import ReadSession, WriteSession

router = api_router(prefix=f"{API}/boards", tags=["boards"])

Place = TypeAdapter(tuple[bool, Name | Literal[""], Name])


@router.get("", response_model=Page[BoardSummary], responses=LISTED)
async def list_boards(listing: KnownListing, caller: KnownCaller) -> Response:
    """The caller's own boards, then those of projects, by name."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[BoardSummary]:
        rows = await queries.list_boards(session, caller, after=read_cursor(cursor, Place), limit=limit + 1)
        return page_of(rows, limit, item=BoardSummary.of, key=lambda row: row.place)

    return await listing.give(read, BOARDS)


@router.post("", status_code=201, responses=documented(ForbiddenError, NotFoundError, ConflictError, InvalidInputError))
async def create_board(
    request: BoardRequest, response: Response, session: WriteSession, caller: KnownCaller
) -> BoardSummary:
    """Make a board, one's own or a project's."""
    project = None if request.project is None else await project_by_name(session, request.project)
    stored = await queries.create_board(session, caller, request.name, project)
    _note(session, stored, name=request.name)
    response.headers["Location"] = f"{API}/boards/{stored.board.id}"
    return BoardSummary.of(stored)


@router.get("/{board_id}", responses=documented(NotFoundError))
async def read_board(session: ReadSession, caller: KnownCaller, board_id: UUID) -> BoardDetail:
    """A board with what is pinned to it. A personal board can be read by everyone who has its address."""
    return await detail_of(session, caller, board_id)


@router.patch("/{board_id}", responses=documented(ForbiddenError, NotFoundError, ConflictError, InvalidInputError))
async def rename_board(change: BoardChange, session: WriteSession, caller: KnownCaller, board_id: UUID) -> BoardSummary:
    """Give a board another name."""
    stored = await queries.rename_board(session, caller, board_id, change.name)
    _note(session, stored, name=change.name)
    return BoardSummary.of(stored)


@router.delete("/{board_id}", responses=documented(ForbiddenError, NotFoundError))
async def remove_board(session: WriteSession, caller: KnownCaller, board_id: UUID) -> BoardSummary:
    """Remove a board and what is pinned to it; what it was is the answer."""
    stored = await queries.remove_board(session, caller, board_id)
    _note(session, stored, name=stored.board.name)
    return BoardSummary.of(stored)


@router.post(
    "/{board_id}/charts",
    status_code=201,
    responses={
        200: {"model": PinReceipt, "description": "Pinned before, and still there"},
        **documented(ForbiddenError, NotFoundError, ConflictError, InvalidInputError),
    },
)
async def pin_chart(
    request: ChartRequest, response: Response, session: WriteSession, caller: KnownCaller, board_id: UUID
) -> PinReceipt:
    """Pin a chart at the end of a board. What is there already stays where it is."""
    project = await project_by_name(session, request.project)
    pin = Pin(request.kind, ProjectId(project.id), request.workload, request.query, request.title)
    chart_id, is_new = await queries.pin_chart(session, caller, board_id, pin)
    note(
        session,
        changed=is_new,
        subject=f"chart {chart_id} of board {board_id}",
        project=request.project,
        kind=request.kind,
    )
    if not is_new:
        response.status_code = 200
    return PinReceipt(board_id=board_id, chart=await _chart(session, board_id, chart_id))


@router.patch("/{board_id}/charts/{chart_id}", responses=documented(ForbiddenError, NotFoundError, InvalidInputError))
async def change_chart(
    change: ChartChange, session: WriteSession, caller: KnownCaller, board_id: UUID, chart_id: KnownId
) -> ChartSummary:
    """Give a pinned chart another title or another place."""
    if "title" in change.model_fields_set:
        await queries.retitle_chart(session, caller, board_id, chart_id, change.title)
    if change.place is not None:
        await queries.move_chart(session, caller, board_id, chart_id, change.place)
    note(session, subject=f"chart {chart_id} of board {board_id}", **change.model_dump(exclude_unset=True))
    return await _chart(session, board_id, chart_id)


@router.delete("/{board_id}/charts/{chart_id}", responses=documented(ForbiddenError, NotFoundError))
async def remove_chart(session: WriteSession, caller: KnownCaller, board_id: UUID, chart_id: KnownId) -> ChartSummary:
    """Take a chart off a board; what it was is the answer."""
    removed = await _chart(session, board_id, chart_id)
    await queries.remove_chart(session, caller, board_id, chart_id)
    note(session, subject=f"chart {chart_id} of board {board_id}", project=removed.project)
    return removed


async def detail_of(session: AsyncSession, caller: Caller, board_id: UUID) -> BoardDetail:
    """A board in full."""
    stored = await queries.board_by_id(session, caller, board_id)
    pinned = await queries.charts_of(session, board_id)
    charts = [ChartSummary.of(chart, place) for place, chart in enumerate(pinned, start=1)]
    return BoardDetail(**BoardSummary.of(stored).model_dump(), pinned=charts)


async def _chart(session: AsyncSession, board_id: UUID, chart_id: int) -> ChartSummary:
    for place, stored in enumerate(await queries.charts_of(session, board_id), start=1):
        if stored.chart.id == chart_id:
            return ChartSummary.of(stored, place)
    raise NotFoundError(f"There is no chart {chart_id} on board {board_id}: it may have been removed.")


def _note(session: AsyncSession, stored: StoredBoard, **details: Any) -> None:
    note(session, subject=f"board {stored.board.id}", project=stored.project, **details)
