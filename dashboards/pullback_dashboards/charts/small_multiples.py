"""Small multiples: a few curves without words, all on one scale, so that many can be put side by side and compared.

What is read off them is shape and height against the others; numbers stand beside them in the page.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pullback_dashboards.charts.palette import LineStyle

WIDTH, HEIGHT = 280, 84
_MARGIN = 4
_MOST_SPOTS = 60  # of a curve; more are not told apart on so few pixels


class SmallCurve(NamedTuple):
    """One variant: its heights, and the places of their commits."""

    name: str
    style: LineStyle
    places: Sequence[int]
    heights: Sequence[float]


@dataclass(frozen=True)
class SharedScale:
    """The scale that all of them have: so many commits, heights between two bounds, the baseline."""

    count: int
    bottom: float
    top: float
    log: bool = False
    baseline: float | None = None

    @classmethod
    def around(
        cls, groups: Sequence[Sequence[SmallCurve]], *, count: int, log: bool = False, baseline: float | None = None
    ) -> "SharedScale":
        """A scale on which every curve of every group has its place."""
        heights = [height for curves in groups for curve in curves for height in curve.heights]
        heights += [] if baseline is None else [baseline]
        if log:
            known = [height for height in heights if height > 0] or [1.0]
            return cls(count, min(known) / 1.1, max(known) * 1.1, log=True, baseline=baseline)
        low, high = min([0.0, *heights]) * 1.08, max([0.0, *heights]) * 1.08
        return cls(count, low, high if low < high else 1.0, baseline=baseline)

    def xs(self, places: Iterable[int]) -> list[float]:
        """The horizontal positions of commits."""
        width = WIDTH - 2 * _MARGIN
        if self.count < 2:
            return [_MARGIN + width / 2 for _ in places]
        return [_MARGIN + place / (self.count - 1) * width for place in places]

    def ys(self, heights: Iterable[float]) -> list[float]:
        """The vertical positions of values."""
        low, high = self.bottom, self.top
        if self.log:
            low, high = math.log(low), math.log(high)
            heights = [math.log(height) for height in heights]
        foot, room, span = HEIGHT - _MARGIN, HEIGHT - 2 * _MARGIN, high - low
        return [foot - (height - low) / span * room for height in heights]


def small(curves: Sequence[SmallCurve], scale: SharedScale) -> str:
    """The SVG element, coloured by the custom properties of the page."""
    return (
        f'<svg class="small" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true" '
        f'focusable="false">{"".join(_marks(curves, scale))}</svg>'
    )


def _marks(curves: Sequence[SmallCurve], scale: SharedScale) -> Iterator[str]:
    if scale.baseline is not None:
        (y,) = scale.ys([scale.baseline])
        yield f'<path class="small-base" d="M0 {y:.1f}H{WIDTH}"/>'
    for curve in curves:
        for begin, end in _runs(curve.heights, log=scale.log):
            places, heights = _thinned(curve.places[begin:end], curve.heights[begin:end])
            points = list(zip(scale.xs(places), scale.ys(heights), strict=True))
            if len(points) == 1:
                points = [(points[0][0] - 2, points[0][1]), *points]
            path = "M" + " ".join([f"{x:.0f} {y:.1f}" for x, y in points])
            yield f'<path d="{path}" fill="none" stroke="{curve.style.colour}"/>'


def _runs(heights: Sequence[float], *, log: bool) -> Iterator[tuple[int, int]]:
    """Beginning and end of stretches without a break: zero and less have no place on a logarithmic axis."""
    breaks = [at for at, height in enumerate(heights) if height <= 0] if log else []
    for before, after in pairwise([-1, *breaks, len(heights)]):
        if before + 1 < after:
            yield before + 1, after


def _thinned(places: Sequence[int], heights: Sequence[float]) -> tuple[Sequence[int], Sequence[float]]:
    """A stretch thinned to what a curve of this size can show: the last of each bucket, and its extremes."""
    count, buckets = len(heights), _MOST_SPOTS // 3
    if count <= _MOST_SPOTS:
        return places, heights
    positions: set[int] = set()
    for number in range(buckets):
        begin, end = number * count // buckets, (number + 1) * count // buckets
        part = heights[begin:end]
        positions |= {begin + part.index(min(part)), begin + part.index(max(part)), end - 1}
    shown = sorted(positions)
    return [places[at] for at in shown], [heights[at] for at in shown]
