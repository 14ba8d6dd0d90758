"""The preview image of a link to a page: project, title, statement and chart.

1200 x 630 is the shape that previews are cut to, so a chart alone, three times as wide as high, would lose its ends.
"""

from collections.abc import Callable, Iterator

from pullback_dashboards.charts.escaping import escape, shortened
from pullback_dashboards.charts.static_chart import HEIGHT as CHART_HEIGHT
from pullback_dashboards.charts.static_chart import NARROWEST, WIDEST

WIDTH, HEIGHT = 1200, 630
_MARGIN = 64
_TITLE, _LEAST_TITLE, _WORDS = 52, 30, 30  # sizes of letters
_LETTER = 0.56  # of its size, how wide a letter is on the average
_MOST_LINES = 3
_LINE = 40


def card(title: str, words: str, draw: Callable[[int], str], *, of: str) -> str:
    """The SVG of the card. `draw` makes a chart of `still` for a width, which fills what the words leave."""
    fitting = int((WIDTH - 2 * _MARGIN) / (_WORDS * _LETTER))
    lines = list(_wrapped(words, fitting))
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1][: fitting - 1]}…"]
    room = WIDTH - 2 * _MARGIN
    size = max(_LEAST_TITLE, min(_TITLE, int(room / (max(1, len(title)) * _LETTER))))
    top = 170 + _LINE * len(lines)
    height = HEIGHT - top - 16
    width = min(WIDEST, max(NARROWEST, round(CHART_HEIGHT * room / height)))
    chart = draw(width).replace("<svg ", f'<svg x="{_MARGIN}" y="{top}" width="{room}" height="{height}" ', 1)
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="var(--surface)"/><rect width="{WIDTH}" height="10" fill="var(--series-1)"/>',
        _text(_MARGIN, 70, 26, "ink-3", f"Pullback · {of}"),
        _text(_MARGIN, 138, size, "ink-2", shortened(title, int(room / (size * _LETTER))), bold=True),
        *(_text(_MARGIN, 188 + _LINE * n, _WORDS, "ink-2", line) for n, line in enumerate(lines)),
        chart,
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, sans-serif">'
        f"{''.join(parts)}</svg>"
    )


def _text(x: int, y: int, size: int, colour: str, text: str, *, bold: bool = False) -> str:
    weight = ' font-weight="700"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}"{weight} fill="var(--{colour})">{escape(text)}</text>'


def _wrapped(text: str, most: int) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > most:
            yield line
            line = ""
        line = f"{line} {shortened(word, most)}".strip()
    if line:
        yield line
