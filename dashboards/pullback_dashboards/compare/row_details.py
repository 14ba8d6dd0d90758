"""A row of the compare page, opened: its history around both commits, and what the processes of each gave."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pullback_dashboards.charts.palette import line_style_of
from pullback_dashboards.charts.static_chart import BESIDE_OTHERS, Axes, Curve, CurvePoint, spot_of, still
from pullback_dashboards.charts.strip import Groups, strip
from pullback_dashboards.history import Commit, metric_label
from pullback_dashboards.wording import units
from pullback_service.comparisons.queries import SeriesDetail
from pullback_service.readings.report_pooling import Spread
from pullback_service.series.windows import PooledPoint


@dataclass(frozen=True)
class Quartiles:
    """Five numbers of one side, in words."""

    side: str
    commit: str
    processes: int
    low: str
    q25: str
    median: str
    q75: str
    high: str


@dataclass(frozen=True)
class ExpandedRow:
    """The content of an open row. Drawings are SVG, made by `charts/`."""

    history: str
    groups: str
    group_count: int
    processes: str
    sides: tuple[Quartiles, ...]
    reports: tuple[str, ...]


def expanded(
    detail: SeriesDetail,
    points: Sequence[PooledPoint],
    groups: Sequence[float],
    processes: tuple[Sequence[float], Sequence[float]],
    *,
    reference: Commit,
    candidate: Commit,
) -> ExpandedRow:
    """The details of a series. `groups` are log ratios of the groups that held both commits, `processes` what those of both gave."""
    sides = ((detail.reference, reference, "reference"), (detail.candidate, candidate, "candidate"))
    judgement = detail.compared.judgement
    return ExpandedRow(
        history=_history(detail, points),
        groups=strip(Groups(tuple(groups), judgement.ratio)) if groups else "",
        group_count=len(groups),
        processes=_processes(detail, *processes),
        sides=_quartiles(
            [(side.reading.spread, commit, role) for side, commit, role in sides if side and side.reading.spread],
            detail,
        ),
        reports=tuple(dict.fromkeys(str(report) for side, _, _ in sides if side for report in side.reports)),
    )


def _history(detail: SeriesDetail, points: Sequence[PooledPoint]) -> str:
    """Ratios to the baseline where there are any, else values."""
    if not points:
        return ""
    compared = detail.compared
    relative = any(point.reading.ratio.log_ratio is not None for point in points)
    unit = compared.unit or "1"
    scale = units.Scale(1.0, "×") if relative else units.scale_for([point.reading.value for point in points], unit)
    baseline = next((point.reading.baseline for point in points if point.reading.baseline), None) if relative else None
    label = metric_label(compared.key[3])
    axes = Axes(
        title=f"{label}, {compared.key[2]} ÷ {baseline}" if baseline else f"{label} of {compared.key[2]}",
        unit="×" if relative else f" {scale.unit}" if scale.unit else "",
        count=len(points),
        first=points[0].commit[:7],
        last=points[-1].commit[:7],
        baseline=1.0 if relative else None,
        baseline_name=baseline or "",
    )
    spots = tuple(_spots(points, scale, relative=relative))
    return still((Curve(compared.key[2], line_style_of(compared.key[2]), spots),), axes, BESIDE_OTHERS)


def _spots(points: Sequence[PooledPoint], scale: units.Scale, *, relative: bool) -> Iterator[CurvePoint | None]:
    for place, (reading, *_) in enumerate(points):
        if not relative:
            yield CurvePoint(place, reading.value / scale.divisor)
        elif reading.ratio.log_ratio is None:
            yield None
        else:
            yield spot_of(place, reading.ratio.log_ratio, reading.ratio, hollow=reading.outcome == "ambiguous")


def _processes(detail: SeriesDetail, older: Sequence[float], newer: Sequence[float]) -> str:
    """Every process as a dot, as a factor of the middle one of the reference: the reference hollow, above."""
    if detail.reference is None or detail.reference.reading.value <= 0:
        return ""
    middle = math.log(detail.reference.reading.value)
    before, now = (_log_ratios(values, middle) for values in (older, newer))
    return strip(Groups(now), Groups(before)) if now and before else ""


def _log_ratios(values: Sequence[float], middle: float) -> tuple[float, ...]:
    return tuple(math.log(value) - middle for value in values if value > 0)


def _quartiles(sides: Sequence[tuple[Spread, Commit, str]], detail: SeriesDetail) -> tuple[Quartiles, ...]:
    """The five numbers of both sides, which stand below each other."""
    numbers = [(s.low, s.q25, s.median, s.q75, s.high) for s, _, _ in sides]
    words = units.quantities([number for five in numbers for number in five], detail.compared.unit or "1")
    fives = (words[start : start + 5] for start in range(0, len(words), 5))
    return tuple(
        Quartiles(role, commit.short, spread.n, *five)
        for (spread, commit, role), five in zip(sides, fives, strict=True)
    )
