"""Levels: every observation of a series around a change as a dot, the levels before and since as lines, as static SVG.

The axis of heights spans what was observed, not zero: a change of 4 % is to be seen. It spans 4 % at least, so that scatter is not
blown up. The commits that may have caused the change are a band. A chart is drawn twice, for a wide window and
for a narrow one, so that its letters keep their size; the page shows one of the two.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pullback_dashboards.charts.escaping import escape

WIDE, NARROW = 860, 340
HEIGHT = 220
_TOP, _BOTTOM, _LEFT = 24, 28, 62
_LEAST_SPAN = 0.04  # of the largest height
_LETTER = 7.2
_MOST_TICKS = 5


class Dot(NamedTuple):
    """An observation at a place: its height, its interval where it has one, and whether the machine was busy."""

    place: int
    height: float
    ends: tuple[float, float] | None = None
    busy: bool = False

    def plain(self) -> dict[str, Any]:
        """Representation in JSON."""
        return self._asdict()


@dataclass(frozen=True)
class Level:
    """A stretch of one height, in words that stand above its line."""

    first: int
    last: int
    height: float
    words: str
    tone: str = "plain"


@dataclass(frozen=True)
class LevelChart:
    """Observations around a change. `since` is the band of commits that may have caused it; `marks` are signs above commits.

    `heights` are the labels of the axis, by height; `ends` the names of the first and the last commit; `notes` are signs below commits.
    """

    title: str
    dots: tuple[Dot, ...]
    levels: tuple[Level, ...]
    since: tuple[int, int]
    marks: tuple[tuple[int, str, str], ...]
    heights: tuple[tuple[float, str], ...]
    ends: tuple[str, str]
    count: int
    notes: tuple[tuple[int, str], ...] = ()

    @property
    def drawings(self) -> tuple[tuple[str, str], ...]:
        """Both drawings, with the name of the window that each is for."""
        return ("wide", levels(self, WIDE)), ("narrow", levels(self, NARROW))


def levels(chart: LevelChart, width: int = WIDE) -> str:
    """The SVG element, coloured by the custom properties of the page."""
    frame = _Frame.around(chart, width)
    return (
        f'<svg class="levels" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" aria-hidden="true" '
        f'focusable="false">{"".join(_marks(chart, frame))}</svg>'
    )


def ticks_between(low: float, high: float) -> tuple[float, ...]:
    """Round heights from low to high, which is above it."""
    power = 10.0 ** (math.floor(math.log10((high - low) / _MOST_TICKS)))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10, 20) if (high - low) / (factor * power) <= _MOST_TICKS)
    return tuple(number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1))


def bounds_of(heights: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest end of an axis that shows these heights."""
    low, high = min(heights), max(heights)
    least = _LEAST_SPAN * max(abs(low), abs(high)) or 1.0
    missing, room = max(0.0, least - (high - low)) / 2, 0.1 * max(high - low, least)
    return low - missing - room, high + missing + room


@dataclass(frozen=True)
class _Frame:
    """The canvas positions of places and heights."""

    bottom: float
    top: float
    count: int
    right: int

    @classmethod
    def around(cls, chart: LevelChart, width: int) -> "_Frame":
        heights = [dot.height for dot in chart.dots] + [level.height for level in chart.levels]
        low, high = bounds_of(heights)
        return cls(low, high, chart.count, width - 14)

    def x(self, place: float) -> float:
        width = self.right - _LEFT
        return _LEFT + ((place + 0.5) / max(1, self.count)) * width

    def y(self, height: float) -> float:
        share = (height - self.bottom) / (self.top - self.bottom)
        return HEIGHT - _BOTTOM - min(1.0, max(0.0, share)) * (HEIGHT - _TOP - _BOTTOM)


def _marks(chart: LevelChart, frame: _Frame) -> Iterator[str]:
    left, right = frame.x(chart.since[0] + 0.5), frame.x(chart.since[1] + 0.5)
    foot = HEIGHT - _BOTTOM
    for height, words in chart.heights:
        y = frame.y(height)
        yield f'<path class="levels-rule" d="M{_LEFT} {y:.1f}H{frame.right}"/>'
        yield f'<text class="levels-tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(words)}</text>'
    yield f'<rect class="levels-since" x="{left - 1:.1f}" y="{_TOP}" width="{max(2.0, right - left):.1f}" height="{foot - _TOP}"/>'
    for dot in chart.dots:
        x, y = frame.x(dot.place), frame.y(dot.height)
        if dot.ends is not None:
            yield f'<path class="levels-doubt" d="M{x:.1f} {frame.y(dot.ends[0]):.1f}V{frame.y(dot.ends[1]):.1f}"/>'
        kind = "levels-busy" if dot.busy else "levels-dot"
        yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
    for level in chart.levels:
        start, end, y = frame.x(level.first - 0.5), frame.x(level.last + 0.5), frame.y(level.height)
        yield f'<path class="levels-line levels-{level.tone}" d="M{start:.1f} {y:.1f}H{end:.1f}"/>'
        if len(level.words) * _LETTER <= end - start + 40:
            above = y - 8 if y > _TOP + 18 else y + 18
            at, anchor = (end, "end") if end > frame.right - 30 else (start, "start")
            yield (
                f'<text class="levels-word levels-{level.tone}" x="{at:.1f}" y="{above:.1f}" text-anchor="{anchor}">'
                f"{escape(level.words)}</text>"
            )
    for place, sign, tone in chart.marks:
        yield f'<text class="{tone}-ink levels-mark" x="{frame.x(place):.1f}" y="16" text-anchor="middle">{escape(sign)}</text>'
    for place, sign in chart.notes:
        yield f'<text class="levels-note" x="{frame.x(place):.1f}" y="{foot - 4}" text-anchor="middle">{escape(sign)}</text>'
    first, last = chart.ends
    yield f'<text class="levels-tick" x="{_LEFT}" y="{HEIGHT - 8}">{escape(first)}</text>'
    yield f'<text class="levels-tick" x="{frame.right}" y="{HEIGHT - 8}" text-anchor="end">{escape(last)}</text>'
