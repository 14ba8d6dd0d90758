"""Small multiples: a few curves without words, all on one scale, so that many can be put side by side and compared.

What is read off them is shape and height against the others; numbers stand beside them in the page.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from pullback_dashboards.charts.static_chart import Curve, Spot

WIDTH, HEIGHT = 280, 84
_MARGIN = 4
_MOST_SPOTS = 60  # of a curve; more are not told apart on so few pixels


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
        cls, groups: Sequence[Sequence[Curve]], *, count: int, log: bool = False, baseline: float | None = None
    ) -> "SharedScale":
        """A scale on which every curve of every group has its place."""
        heights = [spot.height for curves in groups for curve in curves for spot in curve.spots if spot]
        heights += [] if baseline is None else [baseline]
        if log:
            known = [height for height in heights if height > 0] or [1.0]
            return cls(count, min(known) / 1.1, max(known) * 1.1, log=True, baseline=baseline)
        low, high = min([0.0, *heights]) * 1.08, max([0.0, *heights]) * 1.08
        return cls(count, low, high if low < high else 1.0, baseline=baseline)

    def holds(self, spot: Spot) -> bool:
        """True if a value has a place there: zero and less have none on a logarithmic axis."""
        return spot.height > 0 or not self.log

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


def small(curves: Sequence[Curve], scale: SharedScale) -> str:
    """The SVG element, coloured by the custom properties of the page."""
    return (
        f'<svg class="small" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true" '
        f'focusable="false">{"".join(_marks(curves, scale))}</svg>'
    )


def _marks(curves: Sequence[Curve], scale: SharedScale) -> Iterator[str]:
    if scale.baseline is not None:
        (y,) = scale.ys([scale.baseline])
        yield f'<path class="small-base" d="M0 {y:.1f}H{WIDTH}"/>'
    for curve in curves:
        for run in _runs([spot if spot and scale.holds(spot) else None for spot in curve.spots]):
            points = list(zip(scale.xs(spot.place for spot in run), scale.ys(spot.height for spot in run), strict=True))
            if len(points) == 1:
                points = [(points[0][0] - 2, points[0][1]), *points]
            path = "M" + " ".join(f"{x:.0f} {y:.1f}" for x, y in points)
            yield f'<path d="{path}" fill="none" stroke="{curve.look.colour}"/>'


def _runs(spots: Sequence[Spot | None]) -> Iterator[list[Spot]]:
    """Stretches without a break, thinned to what a curve of this size can show: the last of each bucket, and its extremes."""
    run: list[Spot] = []
    for spot in (*spots, None):
        if spot is not None:
            run.append(spot)
        elif run:
            yield _thinned(run)
            run = []


def _thinned(run: list[Spot]) -> list[Spot]:
    if len(run) <= _MOST_SPOTS:
        return run
    buckets = _MOST_SPOTS // 3
    height = itemgetter(Spot._fields.index("height"))
    kept: dict[int, Spot] = {}
    for number in range(buckets):
        part = run[number * len(run) // buckets : (number + 1) * len(run) // buckets]
        for spot in (min(part, key=height), max(part, key=height), part[-1]):
            kept[spot.place] = spot
    return [kept[place] for place in sorted(kept)]
