"""The change of every metric of a comparison, as a small table that is a drawing: for the card beside a link to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from pullback_dashboards.charts.escaping import escape

HEIGHT = 250  # as high as the chart of a card
_ROW, _LETTERS = 34, 17
MOST_ROWS = HEIGHT // _ROW - 1  # below the line that names the columns
_COLUMNS = (0.0, 0.36, 0.66, 1.0)  # of the width; the last ends there


@dataclass(frozen=True)
class Line:
    """A metric, how many of its series are worse and better, in words, and how many are unchanged."""

    label: str
    worse: str
    better: str
    unchanged: int


def tally(lines: Sequence[Line], width: int) -> str:
    """The SVG element. Metrics that do not fit are counted in its last line."""
    visible = lines if len(lines) <= MOST_ROWS else lines[: MOST_ROWS - 1]
    parts = list(_row(0, width, ("", "▲ worse", "▼ better", "unchanged"), ("ink-3",) * 4))
    for number, line in enumerate(visible, 1):
        colours = (
            "ink-2",
            "worse" if line.worse != "0" else "ink-3",
            "better" if line.better != "0" else "ink-3",
            "ink-2",
        )
        parts += _row(number, width, (line.label, line.worse, line.better, str(line.unchanged)), colours)
    if left_out := len(lines) - len(visible):
        parts += _row(len(visible) + 1, width, (f"and {left_out} more", "", "", ""), ("ink-3",) * 4)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}">{"".join(parts)}</svg>'


def _row(number: int, width: int, texts: Sequence[str], colours: Sequence[str]) -> list[str]:
    y = round(_ROW * (number + 0.7))
    return [
        f'<text x="{share * width:.0f}" y="{y}" font-size="{_LETTERS}" fill="var(--{colour})"'
        f' text-anchor="{"end" if share == 1 else "start"}">{escape(text)}</text>'
        for share, text, colour in zip(_COLUMNS, texts, colours, strict=True)
        if text
    ]
