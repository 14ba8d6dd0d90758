"""The cells of the overview's heat map as HTML: a hundred on a page, which is why they are written in Python (`workload/cells.py`)."""

from markupsafe import Markup, escape

from pullback_dashboards.overview.view import Cell, HeatMap, LatestChange, Row
from pullback_dashboards.rendering import unbroken
from pullback_dashboards.wording import factors
from pullback_service.visible_text import visible


def cells(heat: HeatMap, row: Row) -> Markup:
    """The cells of a row: what changed, then the level small beside it, and the newest commits; the commit that changed it most."""
    return Markup("".join([_cell(heat.named(cell.variant), cell) for cell in row.cells]))  # noqa: S704 - escaped below


def _cell(name: str, cell: Cell) -> str:
    move, tone, change = cell.move, cell.change_tone, cell.change
    words = f"{_text(move.words)}; now {_text(cell.words)}" if move else f"now {_text(cell.words)}"
    level, doubt = _text(cell.value), unbroken(cell.doubt)
    if change:
        sign = "" if tone == "plain" else f'<span class="mark" aria-hidden="true">{factors.sign(tone)}</span> '
        large, small = f"{sign}{_text(change)}", doubt if tone == "failed" else f"<b>{level}</b> {doubt}"
    else:
        large, small = level, doubt
    history = f'<span class="history">{cell.sparkline()}</span>\n' if cell.ticks else ""
    recent = f'<span class="recent">{cell.strip()}</span>\n' if cell.recent else ""
    return (
        f'<td><a class="cell tint {tone} depth-{move.depth if move else 0}" href="{_text(cell.href)}"\n'
        f'data-variant="{_text(name)}" title="{words}">\n'
        f'<span class="value">{large}</span>\n<span class="doubt">{small}</span>\n'
        f'{history}{recent}<span class="hidden">{words}</span>\n</a>{_changed_at(move) if move else ""}</td>\n'
    )


def _changed_at(move: LatestChange) -> str:
    return (
        f'<a class="kink sha" href="{_text(move.href)}" title="the commit that changed it">'
        f'<span class="hidden">changed at </span>{_text(move.sha[:7])}</a>'
    )


def _text(text: str) -> Markup:
    return escape(visible(text))
