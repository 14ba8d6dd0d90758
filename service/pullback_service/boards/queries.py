"""Making, finding and changing boards and what is pinned to them.

A personal board can be changed by its owner, a project's board by callers who may upload to the project, and every
board by an administrator of the whole service.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Row, Select, and_, delete, func, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.caller import Caller
from pullback_service.errors import ConflictError, ForbiddenError, MissingObject, NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.models.boards import Board, BoardChart
from pullback_service.models.projects import Project

MOST_BOARDS = 200
"""The most boards of one owner, and of one project."""
MOST_CHARTS = 40
"""The most charts on one board."""


@dataclass(frozen=True, slots=True)
class StoredBoard:
    """A board as a caller sees it: the name of its project, how many charts there are, and what the caller may."""

    board: Board
    project: str | None
    charts: int
    own: bool
    may_change: bool

    @property
    def place(self) -> tuple[bool, str, str]:
        """The sort key in lists: one's own before those of projects, these by project, then by name."""
        return self.project is not None, self.project or "", self.board.name


@dataclass(frozen=True, slots=True)
class StoredChart:
    """A pinned chart and the name of its project."""

    chart: BoardChart
    project: str


@dataclass(frozen=True, slots=True)
class Pin:
    """A chart to pin."""

    kind: str
    project_id: ProjectId
    workload: str | None
    query: Mapping[str, list[str]]
    title: str | None = None


def owner_of(caller: Caller) -> str:
    """Whose boards a caller's own are. A token is known by its id, for its name is free again once it is revoked."""
    return caller.name if caller.token_id is None else f"token {caller.token_id}"


async def list_boards(
    session: AsyncSession,
    caller: Caller,
    *,
    after: tuple[bool, str, str] | None = None,
    limit: int = MOST_BOARDS * 5,
) -> Sequence[StoredBoard]:
    """The caller's own boards, then those of projects, by name.

    Index: uq_board_owner_name, uq_board_project_name, ix_board_chart_board_id.
    """
    place = (Board.project_id.is_not(None), func.coalesce(Project.name, ""), Board.name)
    statement = (
        _select()
        .where(or_(Board.project_id.is_not(None), and_(Board.owner == owner_of(caller), Board.project_id.is_(None))))
        .order_by(*place)
        .limit(limit)
    )
    if after is not None:
        statement = statement.where(tuple_(*place) > after)
    return [_stored(row, caller) for row in (await session.execute(statement)).all()]


async def board_by_id(session: AsyncSession, caller: Caller, board_id: UUID) -> StoredBoard:
    """A board, somebody else's own too: who has its address was told it. Index: pk_board."""
    row = (await session.execute(_select().where(Board.id == board_id))).one_or_none()
    if row is None:
        raise NotFoundError(
            f"There is no board {board_id}: GET /api/v1/boards lists them.",
            missing=MissingObject("board", str(board_id)),
        )
    return _stored(row, caller)


async def charts_of(session: AsyncSession, board_id: UUID) -> Sequence[StoredChart]:
    """The charts pinned to a board, in order, as far as the caller may read its projects. Index: ix_board_chart_board_id."""
    rows = await session.execute(
        select(BoardChart, Project.name)
        .join(Project, Project.id == BoardChart.project_id)
        .where(BoardChart.board_id == board_id)
        .order_by(BoardChart.place, BoardChart.id)
    )
    return [StoredChart(*row) for row in rows]


async def create_board(session: AsyncSession, caller: Caller, name: str, project: Project | None) -> StoredBoard:
    """Make a board. Index: uq_board_owner_name, uq_board_project_name."""
    if project is not None and not caller.has("upload"):
        raise ForbiddenError(
            f"Creating a board of project {project.name!r} needs the scope upload: leave out the project for a board "
            "of your own, or use a token of the scope upload."
        )
    owner = owner_of(caller)
    whose = (
        Board.project_id == project.id
        if project is not None
        else and_(Board.owner == owner, Board.project_id.is_(None))
    )
    if (await session.scalars(select(func.count()).select_from(Board).where(whose))).one() >= MOST_BOARDS:
        raise ConflictError(f"There are {MOST_BOARDS} boards, the limit: remove one first.")
    board = Board(name=name, project_id=None if project is None else project.id, owner=owner, owner_name=caller.name)
    async with _one_of_a_name(session, name):
        session.add(board)
    return await board_by_id(session, caller, board.id)


async def copy_board(session: AsyncSession, caller: Caller, board_id: UUID, name: str) -> StoredBoard:
    """Make a board of one's own with what is pinned to another, as far as the caller may read it.

    Who was told the address of a board could pin the same charts one by one. A board whose token is gone lives on so.
    """
    charts = await charts_of(session, board_id)
    made = await create_board(session, caller, name, None)
    session.add_all(
        BoardChart(
            board_id=made.board.id,
            project_id=each.chart.project_id,
            place=place,
            kind=each.chart.kind,
            workload=each.chart.workload,
            title=each.chart.title,
            query=each.chart.query,
        )
        for place, each in enumerate(charts, start=1)
    )
    await session.flush()
    return await board_by_id(session, caller, made.board.id)


async def rename_board(session: AsyncSession, caller: Caller, board_id: UUID, name: str) -> StoredBoard:
    """Give a board another name."""
    board = (await changeable_board(session, caller, board_id)).board
    async with _one_of_a_name(session, name):
        board.name = name
    await _touch(session, board_id)
    return await board_by_id(session, caller, board_id)


async def remove_board(session: AsyncSession, caller: Caller, board_id: UUID) -> StoredBoard:
    """Remove a board and what is pinned to it; what it was is the answer."""
    stored = await changeable_board(session, caller, board_id)
    await session.execute(delete(Board).where(Board.id == board_id))
    return stored


async def pin_chart(session: AsyncSession, caller: Caller, board_id: UUID, pin: Pin) -> tuple[int, bool]:
    """Pin a chart at the end of a board; the id, and whether it is new. Pinned already, it stays where it is."""
    await changeable_board(session, caller, board_id)
    charts = [stored.chart for stored in await charts_of(session, board_id)]
    for chart in charts:
        if (chart.kind, chart.project_id, chart.workload, chart.query) == (
            pin.kind,
            pin.project_id,
            pin.workload,
            dict(pin.query),
        ):
            return chart.id, False
    if len(charts) >= MOST_CHARTS:
        raise ConflictError(
            f"This board has {MOST_CHARTS} charts, the limit: remove one, or pin this to another board."
        )
    chart = BoardChart(
        board_id=board_id,
        project_id=pin.project_id,
        place=charts[-1].place + 1 if charts else 1,
        kind=pin.kind,
        workload=pin.workload,
        title=pin.title,
        query=dict(pin.query),
    )
    session.add(chart)
    await _touch(session, board_id)
    return chart.id, True


async def chart_by_id(session: AsyncSession, board_id: UUID, chart_id: int) -> StoredChart:
    """A chart of a board."""
    result = next((each for each in await charts_of(session, board_id) if each.chart.id == chart_id), None)
    if result is None:
        raise NotFoundError(f"There is no chart {chart_id} on board {board_id}: it may have been removed.")
    return result


async def retitle_chart(
    session: AsyncSession, caller: Caller, board_id: UUID, chart_id: int, title: str | None
) -> None:
    """Give a chart a title, or with None the one that says what it shows."""
    await changeable_board(session, caller, board_id)
    (await chart_by_id(session, board_id, chart_id)).chart.title = title
    await _touch(session, board_id)


async def move_chart(session: AsyncSession, caller: Caller, board_id: UUID, chart_id: int, place: int) -> None:
    """Put a chart at a place, from 1; the others make room, and beyond the last is the end."""
    await changeable_board(session, caller, board_id)
    charts = [stored.chart for stored in await charts_of(session, board_id)]
    moved = (await chart_by_id(session, board_id, chart_id)).chart
    # Those seen exchange their places among themselves: others, of projects the caller may not read, stay in theirs.
    places = [chart.place for chart in charts]
    charts.remove(moved)
    charts.insert(place - 1, moved)
    for chart, its_place in zip(charts, places, strict=True):
        chart.place = its_place
    await _touch(session, board_id)


async def remove_chart(session: AsyncSession, caller: Caller, board_id: UUID, chart_id: int) -> StoredChart:
    """Take a chart off a board; what it was is the answer."""
    await changeable_board(session, caller, board_id)
    removed = await chart_by_id(session, board_id, chart_id)
    await session.delete(removed.chart)
    await _touch(session, board_id)
    return removed


async def changeable_board(session: AsyncSession, caller: Caller, board_id: UUID) -> StoredBoard:
    """A board that the caller may change, locked, so that two changes come one after the other. Index: pk_board."""
    await session.execute(select(Board.id).where(Board.id == board_id).with_for_update())
    stored = await board_by_id(session, caller, board_id)
    if not stored.may_change:
        whose = f"project {stored.project!r}" if stored.project is not None else stored.board.owner_name
        remedy = "use a token of the scope upload" if stored.project is not None else "make a board of your own"
        raise ForbiddenError(f"Board {stored.board.name!r} belongs to {whose}: {remedy}.")
    return stored


def _select() -> Select[Board, str | None, int]:
    chart_count = (
        select(func.count(BoardChart.id)).where(BoardChart.board_id == Board.id).correlate(Board).scalar_subquery()
    )
    return (
        select(Board, Project.name, chart_count)
        .join(Project, Project.id == Board.project_id, isouter=True)
        .execution_options(populate_existing=True)
    )


def _stored(row: Row[Board, str | None, int], caller: Caller) -> StoredBoard:
    board, project, charts = row
    own = board.project_id is None and board.owner == owner_of(caller) and not caller.anonymous
    of_all = caller.has("admin") and caller.projects is None
    may_change = own or of_all or (board.project_id is not None and caller.has("upload"))
    return StoredBoard(board, project, charts, own=own, may_change=may_change)


@asynccontextmanager
async def _one_of_a_name(session: AsyncSession, name: str) -> AsyncIterator[None]:
    """A savepoint: statements inside are refused where the name is taken, and the transaction goes on."""
    try:
        async with session.begin_nested():
            yield
    except IntegrityError as error:
        raise ConflictError(f"A board {name!r} exists already: pin to it, or choose another name.") from error


async def _touch(session: AsyncSession, board_id: UUID) -> None:
    """The board changed now. Index: pk_board."""
    await session.flush()
    await session.execute(update(Board).where(Board.id == board_id).values(changed_at=func.now()))
