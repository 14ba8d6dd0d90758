"""Sparklines: the ratio of one variant to the baseline across commits, as static SVG of a few hundred bytes.

The scale never zooms into noise: the drawn range spans at least ±5 %, so that a series that does not move looks flat.
Intervals are a band, the baseline a dotted line where it is near, a failed commit a cross at the foot, a gap a gap.
A count of nothing at all has no ratio; it lies on the lower edge. Coordinates are whole half pixels, each path but its
first point in steps: a page has hundreds of these.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH, HEIGHT = 168, 44  # in half pixels
_MARGIN = 6
_LEAST_SPAN = 0.10  # in log ratio
_LEAST_BAND = 3  # half pixels from edge to edge; a narrower band hides under its line


@dataclass(frozen=True)
class Tick:
    """One commit of a sparkline: a log ratio with its interval, a count of zero, a failure, or (unset) no measurement."""

    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    failed: bool = False
    nothing: bool = False

    @property
    def measured(self) -> bool:
        """Whether it has a place on the line."""
        return self.nothing or self.log_ratio is not None


def sparkline(ticks: Sequence[Tick], *, tone: str = "plain", against_baseline: bool = True) -> str:
    """The SVG element, styled by the page through the classes it carries. Empty without any measured commit."""
    values = [bound for tick in ticks if tick.log_ratio is not None for bound in _bounds(tick)]
    if not any(tick.measured or tick.failed for tick in ticks):
        return ""
    frame = _Frame.around(values or [0.0], len(ticks))
    return f'<svg class="spark spark-{tone}" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{"".join(_marks(ticks, frame, against_baseline=against_baseline))}</svg>'


@dataclass(frozen=True)
class _Frame:
    """Where commits and log ratios lie on the canvas."""

    bottom: float
    top: float
    count: int

    @classmethod
    def around(cls, values: Sequence[float], count: int) -> "_Frame":
        low, high = min(values), max(values)
        missing = max(0.0, _LEAST_SPAN - (high - low)) / 2
        return cls(low - missing, high + missing, count)

    def x(self, place: int) -> float:
        step = (WIDTH - 2 * _MARGIN) / max(1, self.count - 1)
        return _MARGIN + place * step if self.count > 1 else WIDTH - _MARGIN

    def y(self, log_ratio: float) -> float:
        share = (log_ratio - self.bottom) / (self.top - self.bottom)
        return HEIGHT - _MARGIN - share * (HEIGHT - 2 * _MARGIN)

    def height_of(self, tick: Tick) -> float:
        return float(HEIGHT - 2) if tick.log_ratio is None else self.y(tick.log_ratio)

    def holds(self, log_ratio: float) -> bool:
        return self.bottom <= log_ratio <= self.top


def _marks(ticks: Sequence[Tick], frame: _Frame, *, against_baseline: bool) -> Iterator[str]:
    if against_baseline and frame.holds(0.0):
        yield f'<path class="spark-base" d="M0 {frame.y(0.0):.0f}h{WIDTH}"/>'
    for run in _runs(ticks):
        banded = [(place, *_bounds(tick)) for place, tick in run if tick.low is not None and tick.low != tick.high]
        band = [(frame.x(place), frame.y(low), frame.y(high)) for place, low, high in banded]
        if len(band) > 1 and any(low - high > _LEAST_BAND for _, low, high in band):
            upper = [(x, high) for x, _, high in band]
            lower = [(x, low) for x, low, _ in reversed(band)]
            yield f'<path class="spark-band" d="{_path(upper + lower)}Z"/>'
        yield f'<path class="spark-line" d="{_path(_middles(run, frame))}"/>'
    for place, tick in enumerate(ticks):
        if tick.failed:
            x, y = frame.x(place), HEIGHT - _MARGIN
            yield f'<path class="spark-failed" d="M{x - 4:.0f} {y - 4:.0f}l8 8m0-8l-8 8"/>'
    measured = [(place, tick) for place, tick in enumerate(ticks) if tick.measured]
    if measured:
        place, tick = measured[-1]
        yield f'<circle class="spark-last" cx="{frame.x(place):.0f}" cy="{frame.height_of(tick):.0f}" r="4"/>'


def _runs(ticks: Sequence[Tick]) -> Iterator[list[tuple[int, Tick]]]:
    """Stretches of measured commits; only a failure breaks a line, a commit nobody measured does not."""
    run: list[tuple[int, Tick]] = []
    for place, tick in enumerate(ticks):
        if tick.measured:
            run.append((place, tick))
        elif tick.failed and run:
            yield run
            run = []
    if run:
        yield run


def _middles(run: list[tuple[int, Tick]], frame: _Frame) -> list[tuple[float, float]]:
    points = [(frame.x(place), frame.height_of(tick)) for place, tick in run]
    return points if len(points) > 1 else [(points[0][0] - 4, points[0][1]), points[0]]


def _bounds(tick: Tick) -> tuple[float, float]:
    middle = tick.log_ratio or 0.0
    return (middle if tick.low is None else tick.low, middle if tick.high is None else tick.high)


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Steps between rounded points, so that rounding does not add up."""
    whole = [(round(x), round(y)) for x, y in points]
    steps = (f"{x - x0}{y - y0:+d}".replace("+", " ") for (x0, y0), (x, y) in pairwise(whole))
    return f"M{whole[0][0]} {whole[0][1]}l{' '.join(steps)}"
