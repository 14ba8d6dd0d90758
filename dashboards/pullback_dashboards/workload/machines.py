"""A case on several machines, side by side: small multiples on one scale and one axis of commits. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pullback_dashboards import links
from pullback_dashboards.charts.palette import line_style_of
from pullback_dashboards.charts.small_multiples import SharedScale, SmallCurve, small
from pullback_dashboards.history import TIERS, Metric, in_reading_order
from pullback_dashboards.wording import factors, units
from pullback_dashboards.workload.scales import is_log
from pullback_dashboards.workload.view import State
from pullback_service.series.sketches import Sketch


@dataclass(frozen=True)
class VariantLine:
    """The newest result of a variant on a machine."""

    variant: str
    text: str
    slot: int


@dataclass(frozen=True)
class MachineChart:
    """One small multiple."""

    machine: str
    href: str
    current: bool
    newest: tuple[VariantLine, ...]
    drawing: str


@dataclass(frozen=True)
class Machines:
    """All of them, and between which heights they lie."""

    title: str
    span: str
    drawn: tuple[MachineChart, ...]
    others: tuple[tuple[str, str], ...] = ()


def side_by_side(
    sketches: Sequence[Sketch],
    names: Mapping[int, str],
    others: Sequence[str],
    *,
    metric: Metric,
    project: str,
    workload: str,
    state: State,
    current: str,
    baseline: str,
) -> Machines:
    """The machines in the order of `names`, relative to the baseline where there are ratios."""
    relative = state.y != "absolute" and any(ratio is not None for sketch in sketches for ratio in sketch.log_ratios)
    scale = units.scale_for([value for sketch in sketches for value in sketch.values], metric.unit)
    variants = in_reading_order({sketch.variant for sketch in sketches})
    strangers = tuple(variant for variant in variants if variant not in TIERS)
    of_machine: dict[int, list[SmallCurve]] = {machine_id: [] for machine_id in names}
    for sketch in sorted(sketches, key=lambda sketch: variants.index(sketch.variant)):
        places, values = _drawn(sketch, scale, relative=relative)
        if values:
            curve = SmallCurve(sketch.variant, line_style_of(sketch.variant, strangers), places, values)
            of_machine[sketch.machine_id].append(curve)
    heights = [curve.heights for curves in of_machine.values() for curve in curves]
    log = is_log(state.scale, [*heights, [1.0]] if relative else heights)
    count = 1 + max(place for sketch in sketches for place in sketch.places)
    shared = SharedScale.around([*of_machine.values()], count=count, log=log, baseline=1.0 if relative else None)

    def address(name: str) -> str:
        return links.workload(project, workload, **state.parameters(machine=name, page=1))

    unit = "×" if relative else f" {scale.unit}" if scale.unit else ""
    return Machines(
        title=f"{metric.label}, variant ÷ {baseline}" if relative else metric.label,
        span=f"all from {shared.bottom:.3g}{unit} to {shared.top:.3g}{unit}{', logarithmic' if log else ''}",
        drawn=tuple(
            MachineChart(
                machine=name,
                href=address(name),
                current=name == current,
                newest=tuple(_newest(of_machine[machine_id], unit)),
                drawing=small(of_machine[machine_id], shared),
            )
            for machine_id, name in names.items()
        ),
        others=tuple((name, address(name)) for name in others),
    )


def _drawn(sketch: Sketch, scale: units.Scale, *, relative: bool) -> tuple[Sequence[int], Sequence[float]]:
    """The places of a curve, and its heights there."""
    if not relative:
        return sketch.places, [value / scale.divisor for value in sketch.values]
    known = [(place, ratio) for place, ratio in zip(sketch.places, sketch.log_ratios, strict=True) if ratio is not None]
    return [place for place, _ in known], [math.exp(ratio) for _, ratio in known]


def _newest(curves: Sequence[SmallCurve], unit: str) -> Iterator[VariantLine]:
    for curve in curves:
        last = curve.heights[-1]
        text = factors.factor(math.log(last)) if unit == "×" and last > 0 else f"{units.significant(last)}{unit}"
        yield VariantLine(curve.name, text, curve.style.slot)
