"""The content of the explore page: menus that narrow each other, and the chosen series as small multiples on one axis of commits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from pullback_dashboards import links
from pullback_dashboards.charts.palette import LineStyle, line_style_of
from pullback_dashboards.charts.static_chart import BESIDE_OTHERS, Axes, Curve, CurvePoint, Note, spot_of, still
from pullback_dashboards.choices import Question
from pullback_dashboards.history import metric_label
from pullback_dashboards.incident_marks import KINDS
from pullback_dashboards.incidents.view import TONES, WRONG
from pullback_dashboards.wording import factors, units
from pullback_service.incidents.evidence import SeriesIncident
from pullback_service.ratio import NO_RATIO
from pullback_service.series.chart_marks import DrawnPoint
from pullback_service.series.filters import PARAM
from pullback_service.series.search import StoredSeries

MOST_DRAWN = 24
MOST_CURVES = 8  # in one chart; more are told apart by nobody
SPLITS = ("metric", "workload", "case", "variant", "kind", "machine", "dtype", "device")


@dataclass(frozen=True)
class MenuValue:
    """One value of a dimension and how many series it leaves; choosing it again lets it go."""

    text: str
    count: int
    href: str
    chosen: bool
    also_href: str | None = None
    """The address that chooses it beside the values chosen already."""


@dataclass(frozen=True)
class Menu:
    """One dimension. `more` values are not listed; words find them."""

    dimension: str
    label: str
    values: tuple[MenuValue, ...]
    more: int

    @property
    def narrows(self) -> bool:
        """True if one of its values is chosen."""
        return any(value.chosen for value in self.values)


@dataclass(frozen=True)
class ChartSeries:
    """A series and its points, oldest commit first, and the incidents that changed it."""

    stored: StoredSeries
    points: tuple[DrawnPoint, ...]
    incidents: tuple[SeriesIncident, ...] = ()


@dataclass(frozen=True)
class ChartIncident:
    """An incident that changed one of a chart's series at a commit that is drawn."""

    id: int
    tone: str
    sign: str
    text: str


@dataclass(frozen=True)
class Chart:
    """One small multiple. `alone` are the names and values that leave nothing but its series, None where none do."""

    title: str
    curves: tuple[Curve, ...]
    axes: Axes
    left_out: int
    alone: tuple[tuple[str, str], ...] | None = None
    pin_href: str | None = None
    incidents: tuple[ChartIncident, ...] = ()

    def still(self) -> str:
        """The chart as SVG, for a place beside another."""
        return still(self.curves, self.axes, BESIDE_OTHERS)


@dataclass(frozen=True)
class SeriesRow(factors.RatioNumbers):
    """One series in the table."""

    case: str
    variant: str
    metric: str
    machine: str
    newest: str
    against: str
    mark: str
    tone: str
    points: int
    commit: str
    value: float | None
    unit: str
    outcome: str | None
    bigger_is_better: bool
    history_href: str
    export_href: str


@dataclass(frozen=True)
class ExploreView:
    """The page."""

    project: str
    series: int
    menus: tuple[Menu, ...]
    charts: tuple[Chart, ...]
    rows: tuple[SeriesRow, ...]
    split: str
    questions: tuple[Question, ...]
    clear_href: str
    words: str
    kept: tuple[tuple[str, str], ...]
    pin_href: str | None = None

    @property
    def narrowed(self) -> bool:
        """True if words or a choice leave out anything."""
        return bool(self.words) or any(menu.narrows for menu in self.menus)


def charts_of(series: Sequence[ChartSeries], *, split: str, relative: bool) -> tuple[Chart, ...]:
    """Small multiples: one for each value of the split and each metric, for metrics share no axis."""
    places = _places(series)
    groups: dict[tuple[str, str], list[ChartSeries]] = {}
    for each in series:
        groups.setdefault((_value(each.stored, split), each.stored.series.metric), []).append(each)
    return tuple(
        replace(
            _chart(_titled(split, value), metric, group, places, relative=relative), alone=_alone(split, value, metric)
        )
        for (value, metric), group in groups.items()
    )


def knows_split(split: str) -> bool:
    """True if charts can be told apart by it: a dimension, a parameter, or nothing at all, which lays all over each other."""
    return split in {"", *SPLITS} or (split.startswith(PARAM) and split != PARAM)


def _titled(split: str, value: str) -> str:
    return f"{split.removeprefix(PARAM)}={value}" if split.startswith(PARAM) else value


def _alone(split: str, value: str, metric: str) -> tuple[tuple[str, str], ...] | None:
    if value == f"no {split.removeprefix(PARAM)}":  # no choice finds what has none
        return None
    return (("metric", metric),) if split in {"", "metric"} else (("metric", metric), (split, value))


def rows_of(series: Sequence[ChartSeries], project: str) -> tuple[SeriesRow, ...]:
    """The table: each series at its newest commit."""
    return tuple(_row(each, project) for each in series)


def _chart(
    value: str, metric: str, group: Sequence[ChartSeries], places: Mapping[str, int], *, relative: bool
) -> Chart:
    is_relative = relative and any(map(_has_ratio, group))
    drawable = [each for each in group if not is_relative or _has_ratio(each)]
    drawn = drawable[:MOST_CURVES]
    unit = drawn[0].stored.series.unit
    scale = (
        units.Scale(1.0, "×")
        if is_relative
        else units.scale_for([reading.value for each in drawn for reading, _ in each.points], unit)
    )
    names = _names(drawn)
    strangers = tuple(dict.fromkeys(names))
    curves = tuple(
        Curve(name, _line_style(each, name, strangers, names), tuple(_spots(each, places, scale, relative=is_relative)))
        for each, name in zip(drawn, names, strict=True)
    )
    title = metric_label(metric) if value in {"", metric} else f"{value}: {metric_label(metric)}"
    shas = list(places)
    incidents = _incidents(drawn, places)
    axes = Axes(
        title=f"{title}, variant ÷ baseline" if is_relative else title,
        unit="×" if is_relative else f" {scale.unit}" if scale.unit else "",
        count=len(places),
        first=shas[0][:7] if shas else "",
        last=shas[-1][:7] if shas else "",
        baseline=1.0 if is_relative else None,
        baseline_name="baseline",
        notes=tuple(Note(place, told.sign, told.tone) for place, told in incidents),
    )
    told = dict.fromkeys(one for _, one in incidents)
    return Chart(title, curves, axes, len(drawable) - len(drawn), incidents=tuple(told))


def _incidents(drawn: Sequence[ChartSeries], places: Mapping[str, int]) -> list[tuple[int, ChartIncident]]:
    """The incidents of the curves, each at the place of its commit there."""
    results = {}
    for one in sorted({one._replace(series_id=0) for each in drawn for one in each.incidents}):
        if one.sha in places:
            tone, sign = TONES.get(one.kind, WRONG)
            mark = ChartIncident(one.id, tone, sign, f"incident {one.id}: {KINDS[one.kind]}, {one.state}")
            results[places[one.sha], one.id] = mark
    return [(place, mark) for (place, _), mark in results.items()]


def _has_ratio(each: ChartSeries) -> bool:
    return any(reading.ratio.log_ratio is not None for reading, _ in each.points)


def _line_style(each: ChartSeries, name: str, strangers: tuple[str, ...], names: Sequence[str]) -> LineStyle:
    """A variant's own look where only variants differ, else the looks in turn."""
    variant = each.stored.series.variant
    if name == variant or len(set(names)) == 1:
        return line_style_of(variant)
    return line_style_of(f"\0{name}", tuple(f"\0{stranger}" for stranger in strangers))


def _spots(
    each: ChartSeries, places: Mapping[str, int], scale: units.Scale, *, relative: bool
) -> Iterator[CurvePoint | None]:
    for reading, commit in each.points:
        hollow = reading.outcome == "ambiguous" and relative
        if not relative:
            yield CurvePoint(places[commit], reading.value / scale.divisor)
        elif reading.ratio.log_ratio is not None:
            yield spot_of(places[commit], reading.ratio.log_ratio, reading.ratio, hollow=hollow)


def _places(series: Sequence[ChartSeries]) -> dict[str, int]:
    """All commits of all series in the order of history."""
    order = {commit: reading for each in series for reading, commit in each.points}
    return {commit: number for number, commit in enumerate(sorted(order, key=lambda commit: order[commit].place))}


def _names(group: Sequence[ChartSeries]) -> list[str]:
    """The names of a chart's series, as short as they can be: the variant, parameters that differ, the machine."""
    told = [_told(each.stored) for each in group]
    keys = list(dict.fromkeys(key for one in told for key in one))
    varying = [key for key in keys if len({one.get(key) for one in told}) > 1] or ["variant"]
    return [" ".join(one[key] for key in varying if key in one) for one in told]


def _told(stored: StoredSeries) -> dict[str, str]:
    case = stored.case
    parameters = {f"param.{name}": f"{name}={value}" for name, value in case.params.items()}
    others = {"dtype": case.dtype or "", "device": case.device or "", "machine": stored.machine.name}
    return {"variant": stored.series.variant, "workload": case.workload, **parameters, **others}


def _value(stored: StoredSeries, split: str) -> str:
    if split.startswith(PARAM):
        name = split.removeprefix(PARAM)
        return written(stored.case.params[name]) if name in stored.case.params else f"no {name}"
    return {
        "": "",
        "metric": stored.series.metric,
        "workload": stored.case.workload,
        "case": stored.case.label,
        "variant": stored.series.variant,
        "machine": stored.machine.name,
        "kind": stored.series.variant_kind,
        "dtype": stored.case.dtype or "no dtype",
        "device": stored.case.device or "no device",
    }[split]


def written(value: object) -> str:
    """A parameter as addresses write it: JSON, but text without its quotes."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _row(each: ChartSeries, project: str) -> SeriesRow:
    series, case, machine = each.stored.series, each.stored.case, each.stored.machine
    last, commit = each.points[-1] if each.points else (None, "")
    ratio, outcome = (last.ratio, last.outcome) if last else (NO_RATIO, None)
    bigger_is_better = series.direction == "bigger"
    return SeriesRow(
        case=case.label,
        variant=series.variant,
        metric=series.metric,
        machine=machine.name,
        newest=units.quantity(last.value if last else None, series.unit),
        against="" if ratio.log_ratio is None else factors.factor(ratio.log_ratio),
        mark=factors.mark(outcome, bigger_is_better=bigger_is_better),
        tone=factors.tone(outcome, bigger_is_better=bigger_is_better),
        points=len(each.points),
        commit=commit[:9],
        value=last.value if last else None,
        unit=series.unit,
        outcome=outcome,
        bigger_is_better=bigger_is_better,
        history_href=links.workload(project, case.workload, case=case.label, machine=machine.name),
        export_href=f"/api/v1/series/{series.id}/points?format=csv",
        **factors.numbers_of(ratio),
    )
