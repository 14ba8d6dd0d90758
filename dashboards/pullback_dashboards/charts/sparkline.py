"""Sparklines: the ratio of one variant to the baseline across commits, as static SVG of a few hundred bytes.

The scale never zooms into noise: the drawn range spans at least ±5 %, so that a series that does not move looks flat.
Intervals are a band, the baseline a dotted line where it is near, a failed commit a cross at the foot, a gap a gap.
A count of nothing at all, or of less, has no ratio; it lies on the lower edge. Coordinates are whole half pixels, each path
but its first point in steps. A page has a hundred of these, of thirty commits each: loops over commits call no functions of
ours.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from pullback_service.ratio import NO_RATIO, Ratio

WIDTH, HEIGHT = 168, 44  # in half pixels
_MARGIN = 6
_LEAST_SPAN = 0.10  # in log ratio
_LEAST_BAND = 3  # half pixels from edge to edge; a narrower band hides under its line
_FOOT = HEIGHT - _MARGIN
_ROOM = HEIGHT - 2 * _MARGIN
_NOTHING_AT = HEIGHT - 2


class Tick(NamedTuple):
    """One commit of a sparkline: a log ratio with its interval, a count of zero or less, a failure, or (unset) no measurement."""

    ratio: Ratio = NO_RATIO
    failed: bool = False
    nothing: bool = False

    def plain(self) -> dict[str, Any]:
        """Representation in JSON."""
        log_ratio, low, high, _ = self.ratio
        return {"log_ratio": log_ratio, "low": low, "high": high, "failed": self.failed, "nothing": self.nothing}


def sparkline(ticks: Sequence[Tick], *, tone: str = "plain", against_baseline: bool = True) -> str:
    """The SVG element, styled by the page through the classes it carries. Empty without any measured commit."""
    runs = list(_runs(ticks))
    if not runs and not any(tick.failed for tick in ticks):
        return ""
    frame = _Frame.around(ticks)
    marks = "".join(_marks(ticks, runs, frame, against_baseline=against_baseline))
    return f'<svg class="spark spark-{tone}" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{marks}</svg>'


_Run = list[tuple[int, Tick]]
_Point = tuple[int, int]


class _Frame(NamedTuple):
    """The canvas positions of commits and log ratios: `y` is `_FOOT` less `_ROOM` times the share of the span."""

    bottom: float
    span: float
    xs: tuple[int, ...]

    @classmethod
    def around(cls, ticks: Sequence[Tick]) -> "_Frame":
        bounds = [bound for tick in ticks if tick[0][0] is not None for bound in tick[0][:3] if bound is not None] or [
            0.0
        ]
        low, high = min(bounds), max(bounds)
        missing = max(0.0, _LEAST_SPAN - (high - low)) / 2
        return cls(low - missing, (high + missing) - (low - missing), _places(len(ticks)))

    def ys(self, log_ratios: Sequence[float | None]) -> list[int]:
        """Heights of ratios; None, which is a count of nothing, lies on the lower edge."""
        bottom, span = self.bottom, self.span
        return [
            _NOTHING_AT if value is None else round(_FOOT - (value - bottom) / span * _ROOM) for value in log_ratios
        ]


@lru_cache(maxsize=64)
def _places(count: int) -> tuple[int, ...]:
    """The positions of so many commits from left to right."""
    step = (WIDTH - 2 * _MARGIN) / max(1, count - 1)
    return tuple(round(_MARGIN + place * step) for place in range(count)) if count > 1 else (WIDTH - _MARGIN,)


def _marks(ticks: Sequence[Tick], runs: Sequence[_Run], frame: _Frame, *, against_baseline: bool) -> Iterator[str]:
    xs = frame.xs
    if against_baseline and frame.bottom <= 0.0 <= frame.bottom + frame.span:
        yield f'<path class="spark-base" d="M0 {frame.ys([0.0])[0]}h{WIDTH}"/>'
    last: _Point | None = None
    for run in runs:
        band = [
            (xs[place], low, (middle or 0.0) if high is None else high)
            for place, ((middle, low, high, _), _, _) in run
            if low is not None and low != high
        ]
        if len(band) > 1 and max(high - low for _, low, high in band) / frame.span * _ROOM > _LEAST_BAND:
            across = [x for x, _, _ in band]
            upper = zip(across, frame.ys([high for _, _, high in band]), strict=True)
            lower = zip(across[::-1], frame.ys([low for _, low, _ in reversed(band)]), strict=True)
            yield f'<path class="spark-band" d="{_path([*upper, *lower])}Z"/>'
        points = list(zip([xs[place] for place, _ in run], frame.ys([tick[0][0] for _, tick in run]), strict=True))
        last = points[-1]
        yield f'<path class="spark-line" d="{_path(points if len(points) > 1 else [(last[0] - 4, last[1]), last])}"/>'
    for place, tick in enumerate(ticks):
        if tick.failed:
            yield f'<path class="spark-failed" d="M{xs[place] - 4} {_FOOT - 4}l8 8m0-8l-8 8"/>'
    if last is not None:
        yield f'<circle class="spark-last" cx="{last[0]}" cy="{last[1]}" r="4"/>'


def _runs(ticks: Sequence[Tick]) -> Iterator[_Run]:
    """Stretches of measured commits; only a failure breaks a line, a commit nobody measured does not."""
    run: _Run = []
    for place, tick in enumerate(ticks):
        if tick.ratio.log_ratio is not None or tick.nothing:
            run.append((place, tick))
        elif tick.failed and run:
            yield run
            run = []
    if run:
        yield run


def _path(points: Sequence[_Point]) -> str:
    """Steps between rounded points, so that rounding does not add up."""
    steps = [f"{x - x0} {y - y0}" if y >= y0 else f"{x - x0}{y - y0}" for (x0, y0), (x, y) in pairwise(points)]
    return f"M{points[0][0]} {points[0][1]}l{' '.join(steps)}"
