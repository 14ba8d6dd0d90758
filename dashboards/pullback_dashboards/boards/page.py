"""`/boards`: boards, one board, and pinning to one. What changes them are forms, so that they work without a script."""

from dataclasses import asdict, replace
from itertools import count
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote
from uuid import UUID

from fastapi import Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, ValidationError
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.boards.pinned_pages import PinnedPage, read_address
from pullback_dashboards.boards.view import (
    BoardsView,
    BoardView,
    PinnedComparison,
    PinView,
    board_row,
    boards_view,
    pinned_of,
    tile,
)
from pullback_dashboards.compare.parameters import comparison_of_query, read_comparison
from pullback_dashboards.compare.view import metric_rows, verdict
from pullback_dashboards.current_project import ComingFrom, onward
from pullback_dashboards.forms import SEE_OTHER, Form, checked
from pullback_dashboards.incident_marks import MOST_MARKS
from pullback_dashboards.rendering import add_formats, csv_response, page, page_at
from pullback_dashboards.routers import page_router
from pullback_service import statements
from pullback_service.access.authentication import KnownCaller
from pullback_service.audit.trail import note, note_nothing
from pullback_service.boards import queries
from pullback_service.boards.queries import Pin, StoredChart
from pullback_service.boards.schemas import BoardChange, BoardRequest, ChartChange, ChartRequest, Place
from pullback_service.comparisons.judgements import summarize
from pullback_service.errors import RequestError, refuse
from pullback_service.fields import KnownId
from pullback_service.ids import ProjectId
from pullback_service.incidents.queries import OPEN, incidents_between, open_incidents_of
from pullback_service.projects.queries import list_projects, project_by_name
from pullback_service.rows_to_models import filled
from pullback_service.series.query_parameters import choice_of
from pullback_service.sessions import ReadSession, WriteSession

router = page_router()


class _Move(BaseModel):
    """The move of a chart, which a form always names."""

    place: Place


_Incidents: TypeAlias = statements.Query[list[tuple[Any, ...]]]
"""Id, kind and state of incidents."""
COLUMNS = ("id", "name", "project", "owner", "charts", "changed_at", "may_change")
MOST_HELD = 8
"""Comparisons that are made for one look at a board; each costs about what its own page costs."""


async def _read_boards(session: ReadSession, caller: KnownCaller) -> BoardsView:
    projects = [project.name for project in await list_projects(session)] if caller.has("upload") else []
    stored = await queries.list_boards(session, caller)
    return boards_view(stored, projects=projects, may_make=not caller.anonymous)


RequestedBoards = Annotated[BoardsView, Depends(_read_boards)]


async def _read_board(board_id: UUID, session: ReadSession, caller: KnownCaller, edit: bool = False) -> BoardView:  # noqa: FBT001, FBT002 - a parameter of the address
    stored = await queries.board_by_id(session, caller, board_id)
    charts = await queries.charts_of(session, board_id)
    number = count(1)
    shown = [
        await _held(session, chart, next(number))
        if chart.chart.kind == "compare"
        else (None, await _incidents_of(session, chart))
        for chart in charts
    ]
    async with statements.together(session) as ask:
        incidents = [None if query is None else ask(query) for _, query in shown]
    tiles = [
        tile(chart, place, pinned, () if open_incidents is None else open_incidents.value)
        for place, (chart, (pinned, _), open_incidents) in enumerate(
            zip(charts, shown, incidents, strict=True), start=1
        )
    ]
    return BoardView(
        board=board_row(stored),
        own=stored.own,
        tiles=tuple(tiles),
        editing=edit and stored.may_change,
        href=links.board(str(board_id)),
        edit_href=links.board(str(board_id), edit="true"),
        may_copy=not caller.anonymous,
    )


RequestedBoard = Annotated[BoardView, Depends(_read_board)]


@page_at(
    router,
    "/boards",
    RequestedBoards,
    csv=lambda view: csv_response("boards", map(asdict, (*view.own, *view.of_projects)), COLUMNS),
)
async def boards_page(request: Request, view: RequestedBoards, kept: ComingFrom) -> Response:
    """The list."""
    return page(request, "boards.html", title="Boards", view=view, coming_from=kept, formats=("json", "csv", "md"))


@router.post("/boards")
async def create_board(request: Request, session: WriteSession, caller: KnownCaller) -> Response:
    """Make a board and show it."""
    form = await Form.of(request)
    requested = checked(BoardRequest, {"name": form.text("name"), "project": form.text("project") or None})
    board_id = await _made(session, caller, requested)
    return _to(request, links.board(str(board_id)))


async def _read_pin(
    session: ReadSession,
    caller: KnownCaller,
    chart: Annotated[str, Query(max_length=8000, description="Address of the page to pin.")],
) -> PinView:
    pinned = _pinned(chart)
    await project_by_name(session, pinned.project)
    stored = await queries.list_boards(session, caller)
    return filled(
        PinView,
        pinned,
        title=pinned.words,
        boards=tuple(board_row(each) for each in stored if each.may_change),
        may_make=not caller.anonymous,
        may_make_for_project=caller.has("upload"),
    )


RequestedPin = Annotated[PinView, Depends(_read_pin)]


add_formats(router, "/boards/pin", RequestedPin)


@router.get("/boards/pin")
async def pin_page(request: Request, view: RequestedPin) -> Response:
    """Choose the board that a chart is pinned to."""
    return page(request, "pin.html", title="Pin to a board", project=view.project, view=view, formats=("json",))


@router.post("/boards/pin")
async def pin_chart(request: Request, session: WriteSession, caller: KnownCaller) -> Response:
    """Pin a chart to a board, or to a new one, and show that."""
    form = await Form.of(request)
    pinned = _pinned(form.text("chart"))
    requested = checked(
        ChartRequest,
        {
            "kind": pinned.kind,
            "project": pinned.project,
            "workload": pinned.workload,
            "query": {name: values for name, values in pinned.query.items() if any(values) or name == "split"},
            "title": form.text("title") or None,
        },
    )
    project = await project_by_name(session, requested.project)
    if form.text("board"):
        board_id = _board_id(form.text("board"))
    else:
        # Those who may make none for a project are not asked.
        owner = form.choice("whose", "own", "project") if form.text("whose") else "own"
        whose = requested.project if owner == "project" else None
        board_id = await _made(session, caller, checked(BoardRequest, {"name": form.text("name"), "project": whose}))
    title = None if requested.title == pinned.words else requested.title
    pin = Pin(requested.kind, ProjectId(project.id), requested.workload, requested.query, title)
    chart_id, is_new = await queries.pin_chart(session, caller, board_id, pin)
    if is_new:
        note(session, subject=f"chart {chart_id} of board {board_id}", project=requested.project, kind=requested.kind)
    elif form.text("board"):
        note_nothing(session)
    return _to(request, f"{links.board(str(board_id))}#chart-{chart_id}")


@page_at(router, "/boards/{board_id}", RequestedBoard)
async def board_page(request: Request, view: RequestedBoard, kept: ComingFrom) -> Response:
    """The board."""
    return page(
        request,
        "board.html",
        title=view.board.name,
        project=view.board.project,
        coming_from=kept,
        view=view,
        formats=("json", "md"),
    )


@router.post("/boards/{board_id}")
async def change_board(board_id: UUID, request: Request, session: WriteSession, caller: KnownCaller) -> Response:
    """Rename a board, remove it, or make a copy of it that is one's own."""
    form = await Form.of(request)
    what = form.choice("do", "rename", "copy", "remove")
    if what == "copy":
        await queries.board_by_id(session, caller, board_id)
        requested = checked(BoardRequest, {"name": form.text("name")})
        copied = await queries.copy_board(session, caller, board_id, requested.name)
        note(session, subject=f"board {copied.board.id}", name=requested.name, copy_of=str(board_id))
        return _to(request, links.board(str(copied.board.id)))
    if what == "remove":
        removed = await queries.remove_board(session, caller, board_id)
        note(session, subject=f"board {board_id}", project=removed.project, removed=removed.board.name)
        return _to(request, links.boards())
    change = checked(BoardChange, {"name": form.text("name")})
    renamed = await queries.rename_board(session, caller, board_id, change.name)
    note(session, subject=f"board {board_id}", project=renamed.project, name=change.name)
    return _to(request, links.board(str(board_id), edit="true"))


@router.post("/boards/{board_id}/charts/{chart_id}")
async def change_pinned_chart(
    board_id: UUID, chart_id: KnownId, request: Request, session: WriteSession, caller: KnownCaller
) -> Response:
    """Move a chart, give it another title, or take it off the board."""
    form = await Form.of(request)
    what, subject = form.choice("do", "move", "title", "remove"), f"chart {chart_id} of board {board_id}"
    if what == "remove":
        removed = await queries.remove_chart(session, caller, board_id, chart_id)
        note(session, subject=subject, project=removed.project, removed=True)
        return _to(request, links.board(str(board_id), edit="true"))
    if what == "title":
        form.needs("title")
        title = checked(ChartChange, {"title": form.text("title") or None}).title
        await queries.retitle_chart(session, caller, board_id, chart_id, title)
        note(session, subject=subject, title=title)
    else:
        place = checked(_Move, {"place": form.number("place")}).place
        await queries.move_chart(session, caller, board_id, chart_id, place)
        note(session, subject=subject, place=place)
    return _to(request, f"{links.board(str(board_id), edit='true')}#chart-{chart_id}")


async def _made(session: AsyncSession, caller: KnownCaller, request: BoardRequest) -> UUID:
    project = None if request.project is None else await project_by_name(session, request.project)
    stored = await queries.create_board(session, caller, request.name, project)
    note(session, subject=f"board {stored.board.id}", project=stored.project, name=request.name)
    return stored.board.id


async def _incidents_of(session: AsyncSession, stored: StoredChart) -> _Incidents | None:
    """The question for open incidents of the series of a chart; None where its address can no longer be read."""
    chart = stored.chart
    try:
        choice = replace(choice_of("", chart.query), project=None)
        choice = choice if chart.workload is None else replace(choice, workload=[chart.workload])
        return await open_incidents_of(session, ProjectId(chart.project_id), choice, limit=MOST_MARKS)
    except (RequestError, ValidationError):
        return None


async def _held(session: AsyncSession, stored: StoredChart, number: int) -> tuple[PinnedComparison, _Incidents | None]:
    """A comparison's present result, and the question for open incidents in between.

    A branch that is gone is told on its tile, and the rest of the board stays.
    """
    if number > MOST_HELD:
        problem = f"A board shows {MOST_HELD} comparisons at most: open this one on its own page."
        return PinnedComparison(problem=problem), None
    try:
        request = comparison_of_query(pinned_of(stored).query)
        result = await read_comparison(session, stored.project, request)
    except RequestError as error:
        return PinnedComparison(problem=error.detail), None
    except ValidationError:
        return PinnedComparison(problem="This pinned chart can no longer be read: remove it and pin it again."), None
    pair = result.answered.pair
    ends = pair.reference.commit.id, pair.candidate.commit.id
    pinned = PinnedComparison(
        verdict=verdict(result.answered.judged.outcomes, result.reference, result.candidate),
        metrics=metric_rows(summarize(result.answered.judged.outcomes)),
        reference=result.reference.short,
        candidate=result.candidate.short,
    )
    return pinned, incidents_between(ProjectId(stored.chart.project_id), *ends, states=OPEN, limit=MOST_MARKS)


def _pinned(address: str) -> PinnedPage:
    address_read = read_address(address)
    if address_read is None:
        refuse("chart", "Only charts of explore, workloads and comparisons can be pinned: give the address of one.")
    return address_read


def _board_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        refuse("board", "This is not a board: choose one from the list.")


def _to(request: Request, address: str) -> Response:
    return RedirectResponse(onward(request, quote(address, safe="/?=&#%")), status_code=SEE_OTHER)
