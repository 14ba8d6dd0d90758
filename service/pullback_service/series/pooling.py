"""Several reports at one commit become one value: pure functions over what was measured.

A series at a commit pools the process values of its clean reports; contaminated ones count only when there is nothing
else. The paired ratio cannot be pooled from its interval alone, so the one with the most groups stands for all, the
newest among equals. An exact metric is what the newest report counted.

Points whose process values were rolled up say five numbers and a count. Alone such a point says exactly what it said
before; pooled with others it stands for as many values, spread evenly between its quartiles, which is an approximation
inside the range of what was measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Protocol, TypeVar


class Measured(Protocol):
    """What pooling reads of a point; points come oldest first."""

    @property
    def value(self) -> float:
        """Median over processes, or a count."""

    @property
    def process_values(self) -> Sequence[float] | None:
        """One value per process; None for a count."""

    @property
    def process_count(self) -> int | None:
        """How many processes there were, where their values were rolled up; with the four that follow."""

    @property
    def process_low(self) -> float | None:
        """Smallest of the values that were rolled up."""

    @property
    def process_q25(self) -> float | None:
        """Their lower quartile."""

    @property
    def process_q75(self) -> float | None:
        """Their upper quartile."""

    @property
    def process_high(self) -> float | None:
        """Largest of them."""

    @property
    def quality(self) -> str:
        """`clean` or `contaminated`."""

    @property
    def n(self) -> int | None:
        """Groups behind the paired ratio."""


M = TypeVar("M", bound=Measured)


@dataclass(frozen=True, slots=True)
class Spread:
    """Five numbers about per-process values."""

    n: int
    low: float
    q25: float
    median: float
    q75: float
    high: float


def spread_of(values: Sequence[float]) -> Spread:
    """Smallest, quartiles and largest of at least one value."""
    ordered = sorted(values)
    count = len(ordered)
    if count == 1:
        only = ordered[0]
        return Spread(1, only, only, only, only, only)
    (a, to_a), (b, to_b), (c, to_c) = _quartiles(count)
    return Spread(
        count,
        ordered[0],
        ordered[a] * (1 - to_a) + ordered[a + 1] * to_a,
        ordered[b] * (1 - to_b) + ordered[b + 1] * to_b,
        ordered[c] * (1 - to_c) + ordered[c + 1] * to_c,
        ordered[-1],
    )


@lru_cache(1024)
def _quartiles(count: int) -> tuple[tuple[int, float], ...]:
    """Behind which of so many ordered values (two or more) each quartile lies, and how far on the way to the next.

    Linear between the values: NumPy's, and `statistics.quantiles(method="inclusive")`. By hand, because a page of 2,000
    points asks for 6,000 of them: a sixth of the time of the standard library's.
    """
    places = [fraction * (count - 1) for fraction in (0.25, 0.5, 0.75)]
    return tuple((int(place), place - int(place)) for place in places)


def usable(points: Sequence[M]) -> Sequence[M]:
    """The clean points, or all of them when none is clean."""
    return [point for point in points if point.quality == "clean"] or points


def speaker(points: Sequence[M]) -> M:
    """The point whose paired ratio stands for all."""
    return max(enumerate(usable(points)), key=lambda item: (item[1].n or 0, item[0]))[1]


def counting(points: Sequence[M]) -> M:
    """The point whose count stands for all."""
    return usable(points)[-1]


def point_spread(point: Measured) -> Spread | None:
    """Spread over the process values of one point; None for an exact metric."""
    return spread_of(point.process_values) if point.process_values else _rolled_up(point)


def pooled_spread(points: Sequence[Measured]) -> Spread | None:
    """Spread over the process values of all usable points; None for an exact metric."""
    pooled = usable(points)
    if len(pooled) == 1:
        return point_spread(pooled[0])
    values = [value for point in pooled for value in _values(point)]
    return spread_of(values) if values else None


def pooled_value(points: Sequence[Measured]) -> float:
    """Median of the pooled process values, or what the newest usable point counted."""
    pooled = usable(points)
    values = [value for point in pooled for value in _values(point)]
    return pooled[-1].value if len(pooled) == 1 or not values else median(values)


def _rolled_up(point: Measured) -> Spread | None:
    """What stands for the process values after the time for which they are kept."""
    low, q25, q75, high = point.process_low, point.process_q25, point.process_q75, point.process_high
    if point.process_count is None or low is None or q25 is None or q75 is None or high is None:
        return None
    return Spread(point.process_count, low, q25, point.value, q75, high)


def _values(point: Measured) -> Sequence[float]:
    """Process values, or as many evenly spread ones in their place."""
    if point.process_values:
        return point.process_values
    rolled = _rolled_up(point)
    if rolled is None:
        return ()
    knots = (rolled.low, rolled.q25, rolled.median, rolled.q75, rolled.high)
    if rolled.n == 1:
        return (rolled.median,)
    values = []
    for rank in range(rolled.n):
        place = 4 * rank / (rolled.n - 1)
        knot = min(int(place), 3)
        values.append(knots[knot] + (knots[knot + 1] - knots[knot]) * (place - knot))
    return values
