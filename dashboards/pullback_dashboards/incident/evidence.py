"""Evidence for an incident and against it, as plain values: observations with their levels, ratios, what did not move."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, isfinite
from statistics import median

from pullback_dashboards import links
from pullback_dashboards.case.irregularities import IrregularityLine, line_of
from pullback_dashboards.charts.forest import Forest
from pullback_dashboards.charts.levels import Dot, Level, LevelChart, bounds_of, ticks_between
from pullback_dashboards.history import metric_label
from pullback_dashboards.incidents.view import EVIDENCE, TONES
from pullback_dashboards.wording import factors, units
from pullback_dashboards.wording.plurals import counted
from pullback_service.incidents.evidence import Observation, PairedComparison, UnchangedSeries
from pullback_service.incidents.irregularities import Irregularity, irregularities_of
from pullback_service.incidents.queries import Detail, NamedChange
from pullback_service.incidents.sentences import SHORT, lead_of, place_of_metric
from pullback_service.incidents.trunk_changes import TrunkReading
from pullback_service.ratio import Ratio
from pullback_service.rows_to_models import filled

MOST_CHANGES = 100
"""Changes of an incident that its page shows; the API has all."""
MOST_CHARTS = 4
_OF_A_LEVEL = 20  # observations before a change, of which its level is taken
_LEAST_RATIOS = 0.7  # of all observations: then ratios are drawn, and values else
_MEASURED = {"levels", "paired", "anchor"}  # evidence of what is not counted
_STANDINGS = {
    "suspected": "suspected",
    "borne_out": "supported by later commits",
    "ambiguous": "ambiguous",
    "refuted": "refuted",
}
_KINDS = {
    "unsteady": "has counts that vary",
    "wrong_gradient": "wrong gradient",
    "failed": "does not run",
    "missing": "missing",
}


@dataclass(frozen=True)
class ChangeRow(factors.RatioNumbers):
    """A change of one series; or of a case, or a variant of it, that gave no measurement, which has no metric."""

    case: str
    case_href: str
    variant: str | None
    metric: str | None
    unit: str | None
    machine: str
    reference: str
    commit: str
    compare_href: str
    kind: str
    worse: bool | None
    evidence: str
    standing: str
    before: float | None
    after: float | None
    groups: int | None
    message: str | None
    group_log_ratios: tuple[float, ...] = ()

    @property
    def metric_in_words(self) -> str:
        """The metric, or what came instead of a number."""
        return _KINDS.get(self.kind, "") if self.metric is None else metric_label(self.metric)

    @property
    def values(self) -> str:
        """The values before and after, where they are known."""
        if self.before is None and self.after is None:
            return ""
        unit = self.unit or ""
        return f"{units.quantity(self.before, unit)} → {units.quantity(self.after, unit)}"

    @property
    def factor(self) -> str:
        """The value after over that before."""
        return "" if self.log_ratio is None else factors.factor(self.log_ratio, self.low, self.high)

    @property
    def ratio(self) -> Ratio:
        """The same with its interval, as forests draw it."""
        return Ratio(self.log_ratio, self.low, self.high, self.groups)

    @property
    def tone(self) -> str:
        """The tone of its direction."""
        return {True: "worse", False: "better"}.get(self.worse, "plain") if self.worse is not None else "plain"

    @property
    def doubt(self) -> str:
        """The interval of the factor, and how many groups it is of; a count has neither."""
        if self.low is not None and self.low == self.high:
            return ""
        parts = [] if self.low is None or self.high is None else [factors.interval(self.low, self.high)]
        return ", ".join([*parts, *([counted(self.groups, "group")] if self.groups else [])])

    @property
    def evidence_in_words(self) -> str:
        """The kind of evidence, and how it stands where that is not all."""
        standing = _STANDINGS.get(self.standing)
        return EVIDENCE[self.evidence] + (f", {standing}" if standing else "")


@dataclass(frozen=True)
class Counterevidence(factors.RatioNumbers):
    """A measurement that does not show the change, or shows that something else did it."""

    case: str
    variant: str
    metric: str
    machine: str
    says: str
    groups: int | None = None
    group_log_ratios: tuple[float, ...] = ()

    @property
    def ratio(self) -> Ratio:
        """The ratio of both commits, as forests draw it."""
        return Ratio(self.log_ratio, self.low, self.high, self.groups)

    @property
    def factor(self) -> str:
        """The value after over that before."""
        return factors.shown(self.ratio)

    @property
    def doubt(self) -> str:
        """Its interval."""
        return factors.bounds(self.ratio)


@dataclass(frozen=True)
class SeriesChart:
    """Every observation of a series around the change, and the levels before and since."""

    case: str
    variant: str
    machine: str
    metric: str
    quantity: str
    """The quantity that is drawn: `time against unfused`, `array allocations`."""
    chart: LevelChart
    summary: str
    """The chart for those who do not see it."""
    irregularities: tuple[IrregularityLine, ...] = ()
    """Spikes, drift and noisier stretches among what is drawn, which the chart marks."""


def rows_of(
    project: str, changes: Sequence[NamedChange], compared: Sequence[PairedComparison]
) -> tuple[ChangeRow, ...]:
    """The changes of an incident: those that are claimed first, time before memory, the largest of each case first."""

    def rank(each: NamedChange) -> tuple[object, ...]:
        size = abs(each.change.log_ratio) if each.change.log_ratio is not None else 0.0
        return (
            each.change.standing != "claimed",
            place_of_metric(each.metric),
            each.case,
            each.change.variant or "",
            -size,
            each.machine,
        )

    groups = {_key_of(one): one.groups for one in compared}
    return tuple(
        _row(project, each, groups.get(_key_of_change(each), ())) for each in sorted(changes, key=rank)[:MOST_CHANGES]
    )


def _key_of(one: PairedComparison) -> tuple[str | None, ...]:
    return one.case, one.variant, one.metric, one.machine, one.reference, one.commit


def _key_of_change(each: NamedChange) -> tuple[str | None, ...]:
    return each.case, each.change.variant, each.metric, each.machine, each.reference.sha, each.commit.sha


def _row(project: str, named: NamedChange, groups: tuple[float, ...]) -> ChangeRow:
    change, reference, commit = named.change, named.reference.sha, named.commit.sha
    return filled(
        ChangeRow,
        change,
        named,
        case_href=links.case(project, commit, named.case, machine=named.machine),
        reference=reference,
        commit=commit,
        compare_href=links.compare(project, base=reference, head=commit, machine=named.machine),
        groups=change.n,
        group_log_ratios=groups if change.evidence == "paired" else (),
    )


def forest_of(rows: Sequence[ChangeRow], objections: Sequence[Counterevidence]) -> Forest:
    """The scale of all ratios."""
    groups = [Ratio(one) for row in rows for one in row.group_log_ratios]
    groups += [Ratio(one) for objection in objections for one in objection.group_log_ratios]
    return Forest.around([*(row.ratio for row in rows), *(one.ratio for one in objections), *groups])


def objections_of(
    detail: Detail, compared: Sequence[PairedComparison], unmoved: Sequence[UnchangedSeries]
) -> tuple[Counterevidence, ...]:
    """Objections to an incident: measured in turns it is not there, an unaffected case moved, other series did not."""
    claimed = {_key_of_change(each) for each in detail.changes if each.change.evidence == "paired"}
    changed = {(each.case, each.change.variant, each.metric, each.machine) for each in detail.changes}

    def found() -> Iterator[Counterevidence]:
        for one in compared:
            if one.is_affected and _key_of(one) not in claimed:
                word = {
                    "same": "measured in turns, nothing changed",
                    "ambiguous": "measured in turns, without an answer",
                }
                if one.outcome in word:
                    yield _objection(one, word[one.outcome], one.groups)
            elif not one.is_affected and one.outcome in factors.DIFFERENT:
                yield _objection(one, "moved as well, though nothing is known to have changed in it", one.groups)
        for other in unmoved:
            if (other.case, other.variant, other.metric, other.machine) not in changed:
                yield _objection(other, "measured at the commit, and did not change")

    return tuple(found())


def _objection(one: PairedComparison | UnchangedSeries, says: str, groups: tuple[float, ...] = ()) -> Counterevidence:
    return Counterevidence(
        case=one.case,
        variant=one.variant,
        metric=metric_label(one.metric),
        machine=one.machine,
        says=says,
        groups=one.ratio.n,
        group_log_ratios=groups,
        **factors.numbers_of(one.ratio),
    )


def drawn_series(detail: Detail) -> tuple[NamedChange, ...]:
    """The changes whose series are drawn: that which speaks for all, then the largest of others."""
    if not detail.changes:
        return ()
    lead = lead_of(detail)
    others = sorted(detail.changes, key=lambda each: -abs(each.change.log_ratio or 0.0))
    drawn: dict[int, NamedChange] = {}
    for each in (lead, *others):
        if each.change.series_id is not None:
            drawn.setdefault(each.change.series_id, each)
    return tuple(drawn.values())[:MOST_CHARTS]


def charts_of(project: str, detail: Detail, observed: Sequence[Observation]) -> tuple[SeriesChart, ...]:
    """Charts of some series around an incident; of a series that was not observed along the trunk there is none."""
    by_series: dict[int, list[Observation]] = {}
    for one in observed:
        by_series.setdefault(one.series_id, []).append(one)
    made = (
        _chart(project, detail, each, by_series.get(each.change.series_id or 0, ())) for each in drawn_series(detail)
    )
    return tuple(chart for chart in made if chart is not None)


def _chart(project: str, detail: Detail, each: NamedChange, observed: Sequence[Observation]) -> SeriesChart | None:
    known = [one for one in observed if isfinite(one.value)]
    order = {position: place for place, position in enumerate(sorted({one.position for one in known}))}
    at = {one.commit_id: order[one.position] for one in known}
    reference, commit = at.get(each.change.reference_id), at.get(each.change.commit_id)
    if reference is None or commit is None or reference >= commit:
        return None
    ratios = [one for one in known if one.ratio.log_ratio is not None]
    by_ratio = each.change.evidence in _MEASURED and len(ratios) >= _LEAST_RATIOS * len(known)
    dots = tuple(_dot(one, order[one.position], by_ratio=by_ratio) for one in (ratios if by_ratio else known))
    ended = at.get(each.change.ended_id) if each.change.ended_id is not None else None
    unit = each.unit or ""

    def said(height: float) -> str:
        return f"{height:.4g}×" if by_ratio else units.quantity(height, unit)

    levels = tuple(_levels(each, dots, (reference, commit, ended), said))
    if not levels:
        return None
    tone, mark = TONES.get(detail.incident.kind, ("failed", "✕"))
    low, high = bounds_of([*(dot.height for dot in dots), *(level.height for level in levels)])
    ticks = ticks_between(low, high)
    labels = [f"{tick:.6g}×" for tick in ticks] if by_ratio else units.quantities(ticks, unit)
    shas = {order[one.position]: one.sha[:SHORT] for one in known}
    irregular = tuple(_irregular(project, each, known)) if each.change.evidence in _MEASURED else ()
    quantity = f"{metric_label(each.metric or '')}{' against the baseline' if by_ratio else ''}"
    return SeriesChart(
        case=each.case,
        variant=each.change.variant or "",
        machine=each.machine,
        metric=each.metric or "",
        quantity=quantity,
        chart=LevelChart(
            title=quantity,
            dots=dots,
            levels=levels,
            since=(reference, commit),
            marks=((commit, mark, tone), *(((ended, "=", "plain"),) if ended is not None else ())),
            heights=tuple(zip(ticks, labels, strict=True)),
            ends=(shas[0], shas[max(shas)]),
            count=len(order),
            notes=tuple((at[one.first_id], line.sign) for one, line in irregular),
        ),
        summary=f"{quantity}: " + "; ".join(level.words for level in levels) + f"; {counted(len(dots), 'observation')}",
        irregularities=tuple(line for _, line in irregular),
    )


def _irregular(
    project: str, each: NamedChange, observed: Sequence[Observation]
) -> Iterator[tuple[Irregularity, IrregularityLine]]:
    shas = {one.commit_id: one.sha for one in observed}
    readings = [
        TrunkReading(one.commit_id, one.value, *one.ratio[:3], (one.ratio.log_ratio is not None,)) for one in observed
    ]
    for irregularity in irregularities_of(readings):
        yield irregularity, line_of(project, each.change.variant or "", each.metric or "", irregularity, shas)


def _dot(one: Observation, place: int, *, by_ratio: bool) -> Dot:
    if not by_ratio:
        return Dot(place, one.value, busy=one.busy)
    middle, low, high, _ = one.ratio
    ends = None if low is None or high is None else (exp(low), exp(high))
    return Dot(place, exp(middle or 0.0), ends, one.busy)


def _levels(
    each: NamedChange, dots: Sequence[Dot], ends: tuple[int, int, int | None], said: Callable[[float], str]
) -> Iterator[Level]:
    """The levels before, since, and behind the end of a change, each the median of its observations."""
    reference, commit, ended = ends
    before = [dot for dot in dots if dot.place <= reference][-_OF_A_LEVEL:]
    since = [dot for dot in dots if dot.place >= commit and (ended is None or dot.place < ended)]
    if not before or not since:
        return
    first, second = (median(dot.height for dot in some) for some in (before, since))
    yield Level(before[0].place, before[-1].place, first, f"{said(first)} before")
    change = f", {factors.shift(each.change.log_ratio)}" if each.change.log_ratio is not None else ""
    change += " in the same groups" if change and each.change.evidence == "paired" else ""
    tone = (
        {True: "worse", False: "better"}.get(each.change.worse, "plain") if each.change.worse is not None else "plain"
    )
    yield Level(since[0].place, since[-1].place, second, f"{said(second)} since{change}", tone)
    behind = [dot for dot in dots if ended is not None and dot.place >= ended]
    if behind:
        third = median(dot.height for dot in behind)
        yield Level(behind[0].place, behind[-1].place, third, f"{said(third)} again")
