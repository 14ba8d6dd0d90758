"""Pooling: the reports of a series at one commit become one reading. Pure: points in, a reading out.

Process values of all reports are pooled, each report's weighed by the inverse square of its own scatter: reports of a
busy machine have little weight beside those of a quiet one, and all of it where there are no others. A paired ratio
cannot be pooled from its interval alone, so the one with the most groups stands for all, the newest among equals. A count is
what the newest report counted; where calls count differently the least and the most of all reports stand beside it. For ratios and
counts clean reports speak before busy ones.

Reports of another workload text or another harness than the newest tells are of another level: they stay as points, and the
reading is that of the newest.

Points whose process values were rolled up have five numbers and a count. Alone such a point gives exactly what it gave
before; pooled with others it stands for as many values, spread evenly between its quartiles, which is an approximation
inside the range of what was measured.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, LiteralString, NamedTuple, Self, TypeVar

from pullback_service.measured_code.code_identity import NOT_TOLD, CodeIdentity, other_level
from pullback_service.quality import BUSY, CLEAN
from pullback_service.ratio import NO_RATIO, Ratio

LEAST_SCATTER = 1e-3
"""The least scatter of a report's processes, relative to their median: fewer than the usual five may agree by chance."""
FEWEST_FOR_SCATTER = 3

LEVEL: LiteralString = "measured.workload, measured.harness"
"""The columns, beside those of a point, that say of which level it is."""

Row = TypeVar("Row", bound=Sequence[Any])


class MeasuredPoint(NamedTuple):
    """A point as its report measured it; points of a commit come oldest first.

    `value` is the median over processes, or a count. `process_values` are one for each process; where they were rolled up,
    `process_count` to `process_high` stand for them; of a count that differs from call to call `process_low` and `process_high` alone are
    the least and the most. A `quality` that is not `clean` is of a busy machine. The ratio is to the `baseline`, in the same
    groups.
    """

    value: float
    process_values: Sequence[float] | None = None
    process_count: int | None = None
    process_low: float | None = None
    process_q25: float | None = None
    process_q75: float | None = None
    process_high: float | None = None
    baseline: str | None = None
    ratio: Ratio = NO_RATIO
    outcome: str | None = None
    quality: str = CLEAN
    dirty: bool = False
    method: str | None = None
    program_hash: str | None = None
    measured_id: int | None = None

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """The point in a row with these fields, its ratio as four columns."""
        return cls._make((*row[:8], Ratio._make(row[8:12]), *row[12:]))


@dataclass(frozen=True, slots=True)
class Spread:
    """Five numbers about per-process values."""

    n: int
    low: float
    q25: float
    median: float
    q75: float
    high: float

    @property
    def columns(self) -> tuple[int, float, float, float, float]:
        """The columns beside the median, the number of values first."""
        return self.n, self.low, self.q25, self.q75, self.high


class PooledPoints(NamedTuple):
    """The pooled points of a series at a commit.

    `consistent`: all processes of all reports agree on one count; where calls differ, their ranges overlap. `quality` is `busy` where no report is clean.
    """

    quality: str
    dirty: bool
    value: float
    process_count: int | None
    process_low: float | None
    process_q25: float | None
    process_q75: float | None
    process_high: float | None
    baseline: str | None
    ratio: Ratio
    outcome: str | None
    consistent: bool
    method: str | None
    program_hash: str | None
    measured_id: int | None

    @property
    def spread(self) -> Spread | None:
        """Five numbers about the pooled process values; None of a count."""
        return spread_in(self.value, self[3:8])


def spread_in(median: float, columns: Sequence[Any]) -> Spread | None:
    """The spread that columns hold beside their median, the number of values first; None where they hold none."""
    if None in columns:
        return None
    count, low, q25, q75, high = columns
    return Spread(count, low, q25, median, q75, high)


def pool(points: Sequence[MeasuredPoint]) -> PooledPoints:
    """One reading of points of a series at a commit, oldest first, of one level."""
    is_alone = len(points) == 1
    newest_point = points[0] if is_alone else _speaker(points)
    spread = _pooled_spread(points)
    median = counting(points).value if spread is None else spread.median
    count, low, q25, q75, high = _calls(points) if spread is None else spread.columns
    return PooledPoints(
        quality=CLEAN if newest_point.quality == CLEAN or any(point.quality == CLEAN for point in points) else BUSY,
        dirty=newest_point.dirty or any(point.dirty for point in points),
        value=newest_point.value if is_alone else median,
        process_count=count,
        process_low=low,
        process_q25=q25,
        process_q75=q75,
        process_high=high,
        baseline=newest_point.baseline,
        ratio=newest_point.ratio,
        outcome=newest_point.outcome,
        consistent=_is_consistent(points),
        method=newest_point.method,
        program_hash=newest_point.program_hash,
        measured_id=next((point.measured_id for point in reversed(points) if point.measured_id is not None), None),
    )


def of_one_level(points: Sequence[Row]) -> Sequence[Row]:
    """Rows of points of a series at a commit, oldest first, that end with `LEVEL`: those that compare with the newest one that tells it."""
    if len(points) == 1:
        return points
    levels = [CodeIdentity(workload or "", harness=harness or "") for *_, workload, harness in points]
    newest = next((level for level in reversed(levels) if level != NOT_TOLD), NOT_TOLD)
    return [point for point, level in zip(points, levels, strict=True) if other_level(level, newest) is None]


def _is_consistent(points: Sequence[MeasuredPoint]) -> bool:
    if len(points) == 1:
        low, high = _counts_in_common(points[0])
        return low <= high
    ends = [_counts_in_common(point) for point in _speaking(points)]
    return max(low for low, _ in ends) <= min(high for _, high in ends)


def _counts_in_common(point: MeasuredPoint) -> tuple[float, float]:
    """The least and the most that all processes of a report may have counted; low > high where there is none."""
    known = [each for each in (point.process_low, point.process_high) if each is not None]
    if point.process_count is None and known:
        return min(known), max(known)
    counts = [point.value, *(point.process_values or ()), *known]
    return max(counts), min(counts)


def _calls(points: Sequence[MeasuredPoint]) -> tuple[None, float | None, None, None, float | None]:
    """The columns of a count beside its value: the least and the most that a call counted, where calls differ."""
    speaking = _speaking(points)
    low = min((point.process_low for point in speaking if point.process_low is not None), default=None)
    high = max((point.process_high for point in speaking if point.process_high is not None), default=None)
    return None, low, None, None, high


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
    """The positions of the quartiles among ordered values (two or more), and their fraction of the way to the next value.

    Linear between the values: NumPy's, and `statistics.quantiles(method="inclusive")`. By hand, because an upload of 10,000
    points asks for as many: a sixth of the time of the standard library's.
    """
    places = [fraction * (count - 1) for fraction in (0.25, 0.5, 0.75)]
    return tuple((int(place), place - int(place)) for place in places)


def weighted_spread(values: Sequence[float], weights: Sequence[float]) -> Spread:
    """Like `spread_of`, for weighted values: equal weights give the same result up to rounding.

    A value stands at the middle of its weight, the first at 0 and the last at 1; quartiles are linear between them.
    """
    ordered = sorted(zip(values, weights, strict=True))
    through = list(accumulate(weight for _, weight in ordered))
    middles = [end - weight / 2 for end, (_, weight) in zip(through, ordered, strict=True)]
    span = middles[-1] - middles[0]

    def quantile(fraction: float) -> float:
        at = middles[0] + fraction * span
        above = next(place for place, middle in enumerate(middles) if middle >= at)
        if above == 0:
            return ordered[0][0]
        low, high = middles[above - 1], middles[above]
        share = (at - low) / (high - low) if high > low else 1.0
        return ordered[above - 1][0] * (1 - share) + ordered[above][0] * share

    return Spread(len(ordered), ordered[0][0], quantile(0.25), quantile(0.5), quantile(0.75), ordered[-1][0])


def _speaking(points: Sequence[MeasuredPoint]) -> Sequence[MeasuredPoint]:
    """The clean points, or all of them where none is clean."""
    return points if len(points) == 1 else [point for point in points if point.quality == CLEAN] or points


def _speaker(points: Sequence[MeasuredPoint]) -> MeasuredPoint:
    """The point whose paired ratio stands for all."""
    return max(enumerate(_speaking(points)), key=lambda item: (item[1].ratio.n or 0, item[0]))[1]


def counting(points: Sequence[MeasuredPoint]) -> MeasuredPoint:
    """The point whose count stands for all."""
    return _speaking(points)[-1]


def _point_spread(point: MeasuredPoint) -> Spread | None:
    """Spread over the process values of one point; None where there are none."""
    return spread_of(point.process_values) if point.process_values else _rolled_up(point)


def _pooled_spread(points: Sequence[MeasuredPoint]) -> Spread | None:
    """Spread over the process values of all points, weighed by report; None where there are none.

    A busy report of too few processes to tell their scatter is left out where there are others.
    """
    if len(points) == 1:
        return _point_spread(points[0])
    known = [point for point in points if point.quality == CLEAN or _scatter(point)]
    measured = [(point, values) for point in known or points if (values := _values(point))]
    if not measured:
        return None
    scatters = _scatters(point for point, _ in measured)
    values = [value for _, of_point in measured for value in of_point]
    if len(set(scatters)) == 1:
        return spread_of(values)
    least = min(scatters)
    weights = [
        (least / scatter) ** 2 for scatter, (_, of_point) in zip(scatters, measured, strict=True) for _ in of_point
    ]
    return weighted_spread(values, weights)


def _scatters(points: Iterable[MeasuredPoint]) -> Sequence[float]:
    """The scatter of each point's processes; of too few processes that of the point that scatters most, 1 if all are too few."""
    results = [_scatter(point) for point in points]
    unknown = max(results) or 1.0
    return [scatter or unknown for scatter in results]


def _scatter(point: MeasuredPoint) -> float:
    """Quartile distance over 1.35: the standard deviation, were processes normal; 0 of too few of them.

    Never less than `LEAST_SCATTER` of the median.
    """
    spread = _point_spread(point)
    if spread is None or spread.n < FEWEST_FOR_SCATTER:
        return 0.0
    return max((spread.q75 - spread.q25) / 1.35, LEAST_SCATTER * abs(spread.median))


def _rolled_up(point: MeasuredPoint) -> Spread | None:
    """The stand-ins for process values after the time for which they are kept."""
    return spread_in(point.value, point[2:7])


def _values(point: MeasuredPoint) -> Sequence[float]:
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
