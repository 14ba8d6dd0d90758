"""A case on several machines, side by side: small multiples on one scale and one axis of commits. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pullback_dashboards import links
from pullback_dashboards.charts.palette import BASELINE, look_of
from pullback_dashboards.charts.small import SharedScale, small
from pullback_dashboards.charts.still import Curve, Spot
from pullback_dashboards.history import TIERS, Metric, in_reading_order
from pullback_dashboards.wording import factors, units
from pullback_dashboards.workload.scales import is_log
from pullback_dashboards.workload.view import State
from pullback_service.series.case_history import Place, SketchedPoint


@dataclass(frozen=True)
class Newest:
    """What a variant says at its newest commit on a machine."""

    variant: str
    text: str
    slot: int


@dataclass(frozen=True)
class OnMachine:
    """One small multiple."""

    machine: str
    href: str
    current: bool
    newest: tuple[Newest, ...]
    drawing: str


@dataclass(frozen=True)
class Machines:
    """All of them, and between which heights they lie."""

    title: str
    span: str
    drawn: tuple[OnMachine, ...]
    others: tuple[tuple[str, str], ...] = ()


def side_by_side(
    points: Sequence[SketchedPoint],
    names: Mapping[int, str],
    others: Sequence[str],
    *,
    metric: Metric,
    project: str,
    workload: str,
    state: State,
    current: str,
) -> Machines:
    """The machines in the order of `names`, relative to the baseline where there are ratios."""
    relative = state.y == "relative" and any(point.log_ratio is not None for point in points)
    places = {place: number for number, place in enumerate(sorted({point.place for point in points}))}
    scale = units.scale_for([point.value for point in points], metric.unit)
    strangers = tuple(v for v in in_reading_order({p.variant for p in points}) if v not in TIERS)
    of_machine: dict[int, dict[str, list[SketchedPoint]]] = {machine_id: {} for machine_id in names}
    for point in points:
        of_machine[point.machine_id].setdefault(point.variant, []).append(point)
    curves = {
        machine_id: tuple(_curves(of_variant, places, strangers, scale, relative=relative))
        for machine_id, of_variant in of_machine.items()
    }
    heights = [[spot.height for spot in curve.spots if spot] for drawn in curves.values() for curve in drawn]
    log = is_log(state.scale, [*heights, [1.0]] if relative else heights)
    shared = SharedScale.around(list(curves.values()), count=len(places), log=log, baseline=1.0 if relative else None)

    def address(name: str) -> str:
        return links.workload(project, workload, **state.parameters(machine=name, page=1))

    unit = "×" if relative else f" {scale.unit}" if scale.unit else ""
    return Machines(
        title=f"{metric.label}, variant ÷ {BASELINE}" if relative else metric.label,
        span=f"all from {shared.bottom:.3g}{unit} to {shared.top:.3g}{unit}{', logarithmic' if log else ''}",
        drawn=tuple(
            OnMachine(
                machine=name,
                href=address(name),
                current=name == current,
                newest=tuple(_newest(curves[machine_id], unit)),
                drawing=small(curves[machine_id], shared),
            )
            for machine_id, name in names.items()
        ),
        others=tuple((name, address(name)) for name in others),
    )


def _curves(
    of_variant: Mapping[str, Sequence[SketchedPoint]],
    places: Mapping[Place, int],
    strangers: tuple[str, ...],
    scale: units.Scale,
    *,
    relative: bool,
) -> Iterator[Curve]:
    for variant in in_reading_order(of_variant):
        if relative and variant == BASELINE:
            continue
        points = of_variant[variant]
        spots = (
            tuple(
                Spot(places[place], math.exp(log_ratio))
                for _, _, place, _, log_ratio in points
                if log_ratio is not None
            )
            if relative
            else tuple(Spot(places[place], value / scale.divisor) for _, _, place, value, _ in points)
        )
        if spots:
            yield Curve(variant, look_of(variant, strangers), spots)


def _newest(curves: Sequence[Curve], unit: str) -> Iterator[Newest]:
    for curve in curves:
        last = next(spot for spot in reversed(curve.spots) if spot)
        text = (
            factors.factor(math.log(last.height))
            if unit == "×" and last.height > 0
            else f"{units.significant(last.height)}{unit}"
        )
        yield Newest(curve.name, text, curve.look.slot)
