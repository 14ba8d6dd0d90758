"""The content of the pages of boards."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pullback_dashboards import links
from pullback_dashboards.boards.pinned_pages import PinnedPage
from pullback_dashboards.compare.view import Metric, Verdict
from pullback_dashboards.incident_marks import IncidentMark, marks_of
from pullback_service.boards.queries import StoredBoard, StoredChart
from pullback_service.rows_to_models import filled


@dataclass(frozen=True)
class BoardRow:
    """A board in a list."""

    id: str
    name: str
    project: str | None
    owner: str
    charts: int
    changed_at: datetime
    may_change: bool
    href: str


@dataclass(frozen=True)
class BoardsView:
    """All boards one may choose from. `may_make`: whether the reader may have boards."""

    own: tuple[BoardRow, ...]
    of_projects: tuple[BoardRow, ...]
    projects: tuple[str, ...]
    may_make: bool


@dataclass(frozen=True)
class PinnedComparison:
    """A pinned comparison's present result: its verdict and the change of every metric, or why there is none."""

    verdict: Verdict | None = None
    metrics: tuple[Metric, ...] = ()
    reference: str = ""
    candidate: str = ""
    problem: str | None = None


@dataclass(frozen=True)
class Tile:
    """One pinned chart: an image, or a comparison in words, and the open incidents of what it shows."""

    id: int
    place: int
    title: str
    own_title: str
    project: str
    kind: str
    href: str
    image: str | None
    narrow_image: str | None
    held: PinnedComparison | None = None
    incidents: tuple[IncidentMark, ...] = ()


@dataclass(frozen=True)
class BoardView:
    """A board."""

    board: BoardRow
    own: bool
    tiles: tuple[Tile, ...]
    editing: bool
    href: str
    edit_href: str
    may_copy: bool = False


@dataclass(frozen=True)
class PinView:
    """A page about to be pinned, and the boards it can be pinned to."""

    address: str
    title: str
    image: str | None
    narrow_image: str | None
    project: str
    boards: tuple[BoardRow, ...]
    may_make: bool
    may_make_for_project: bool


def board_row(stored: StoredBoard) -> BoardRow:
    """A board in a list."""
    board = stored.board
    id_ = str(board.id)
    return filled(BoardRow, stored, board, id=id_, owner=board.owner_name, href=links.board(id_))


def pinned_of(stored: StoredChart) -> PinnedPage:
    """The page that a stored chart names."""
    chart = stored.chart
    return PinnedPage(chart.kind, stored.project, chart.workload, chart.query)


def tile(
    stored: StoredChart,
    place: int,
    comparison: PinnedComparison | None = None,
    incidents: Iterable[tuple[Any, ...]] = (),
) -> Tile:
    """A pinned chart at its place; incidents are given by id, kind and state."""
    pinned = pinned_of(stored)
    return filled(
        Tile,
        pinned,
        id=stored.chart.id,
        place=place,
        title=stored.chart.title or pinned.words,
        own_title=stored.chart.title or "",
        href=pinned.address,
        held=comparison,
        incidents=marks_of(stored.project, incidents),
    )


def boards_view(stored: Sequence[StoredBoard], *, projects: Sequence[str], may_make: bool) -> BoardsView:
    """The list of boards: one's own, then those of projects."""
    rows = [(board_row(each), each.own) for each in stored]
    return BoardsView(
        own=tuple(row for row, own in rows if own),
        of_projects=tuple(row for row, own in rows if not own),
        projects=tuple(projects),
        may_make=may_make,
    )
