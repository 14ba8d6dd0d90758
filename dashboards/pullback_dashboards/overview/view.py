"""The content of the overview, as plain values: a history in, cells with words, doubt and sparkline out."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pullback_dashboards import links
from pullback_dashboards.charts.sparkline import Tick, sparkline
from pullback_dashboards.charts.squares import squares
from pullback_dashboards.history import Commit, Curve, Failure, Metric, baseline_in_words, short_of
from pullback_dashboards.news.view import RECENTLY, CellChange
from pullback_dashboards.overview.parameters import State
from pullback_dashboards.overview.ranking import Extremes, Mean, RankedWorkload, VariantResult
from pullback_dashboards.rerun_commands import EXTERNAL
from pullback_dashboards.wording import factors, units
from pullback_dashboards.wording.plurals import counted
from pullback_service.ratio import Ratio
from pullback_service.readings.reading import Mark, Reading
from pullback_service.uploaded_claims import BASELINE

SPARK_COMMITS = 30
STALE_AFTER = 5  # commits; a machine that measures parts of a suite in turn is not stale for that
_GRAVITY = ("failed", "worse", "likely-worse", "unsure", "better", "likely-better", "plain")
_made = tuple.__new__  # as in `reading.py`: a page makes thousands of ticks
_FAR = 10.0  # in log ratio: what moved from zero, or failed, has no ratio and is larger than any
_BUSY = "busy"  # on a busy machine: a cell is narrow, and the key below the cells says what it means
FEW_GROUPS = 12  # with fewer the floor is provisional


@dataclass(frozen=True)
class LatestChange:
    """The gravest change of a cell at the newest commits, where it is the same as before nothing."""

    tone: str
    depth: int
    amount: str
    sha: str
    href: str
    words: str

    @property
    def mark(self) -> str:
        """The sign of its tone."""
        return factors.sign(self.tone)


@dataclass(frozen=True)
class Cell(factors.RatioNumbers):
    """One variant of one case at its newest commit: its level, with what changed at the newest commits.

    `drift` is the change over these in words, of what nothing claims to have changed.
    """

    variant: str
    tone: str
    depth: int
    mark: str
    value: str
    words: str
    doubt: str
    href: str
    outcome: str | None = None
    measured: float | None = None
    sha: str | None = None
    outdated: bool = False
    ticks: tuple[Tick, ...] = ()
    against_baseline: bool = True
    move: LatestChange | None = None
    drift: str = ""
    recent: tuple[str, ...] = ()
    """The newest commits, oldest first: the tone of what changed at each, `plain` where nothing did, empty where not measured."""

    @property
    def change(self) -> str:
        """The change that the cell shows: by how much, or that it failed."""
        if self.tone == "failed":
            return "failed"
        return self.drift if self.move is None else self.move.amount or self.value

    @property
    def change_tone(self) -> str:
        """The tone of that change."""
        return "failed" if self.tone == "failed" else "plain" if self.move is None else self.move.tone

    @cached_property
    def _strip(self) -> str:
        return squares(self.recent)

    def strip(self) -> str:
        """The newest commits as squares, drawn once however often the cell is shown."""
        return self._strip

    @cached_property
    def _sparkline(self) -> str:
        return sparkline(self.ticks, tone=self.tone, against_baseline=self.against_baseline)

    def sparkline(self) -> str:
        """The history as SVG, drawn once however often the cell is shown."""
        return self._sparkline


@dataclass(frozen=True)
class Row:
    """One case, or a workload by the worst of its cases."""

    label: str
    href: str
    cells: tuple[Cell, ...]
    case: str | None = None
    cases: int = 1
    stale: str = ""


@dataclass(frozen=True)
class Group:
    """One workload: a row that stands for all its cases where it has several, and those of them that are shown.

    `toggle` is the address that opens or closes it; None where that is not for the reader to decide.
    """

    workload: str
    href: str
    summary: Row | None
    rows: tuple[Row, ...]
    opened: bool
    toggle: str | None = None
    more: int = 0


@dataclass(frozen=True)
class Tally:
    """The number of cases of a variant that became worse and better; of those `failed` some may work again."""

    variant: str
    worse: int = 0
    better: int = 0
    likely_worse: int = 0
    likely_better: int = 0
    failed: int = 0

    @property
    def counts(self) -> Sequence[tuple[str, int, str]]:
        """Tone, number and words of each kind that there is."""
        every = (
            ("failed", self.failed, "failed"),
            ("worse", self.worse, "worse"),
            ("likely-worse", self.likely_worse, "likely worse"),
            ("better", self.better, "better"),
            ("likely-better", self.likely_better, "likely better"),
        )
        return [each for each in every if each[1]]


@dataclass(frozen=True)
class HeatMap:
    """Workloads by variants in one metric, and the mean of every column."""

    metric: Metric
    variants: tuple[str, ...]
    groups: tuple[Group, ...]
    means: tuple[Mean, ...]
    baseline: str = BASELINE
    """The variant that ratios are against, in words: of cases with different ones `the baseline`."""

    changes: tuple[Tally, ...] = ()
    recent: int = 0
    """The number of newest commits whose changes the cells show."""

    def moved(self, variant: str) -> Tally:
        """The number of cases of a variant that changed at these."""
        return next((tally for tally in self.changes if tally.variant == variant), Tally(variant))

    @property
    def compares(self) -> bool:
        """True if there is a baseline to compare the variants with."""
        return self.baseline in self.variants or self.has_means

    def named(self, variant: str) -> str:
        """The name of a column: what another tool measured has no variants, so its only column is that of the metric."""
        return self.metric.label if self.variants == (EXTERNAL,) else variant

    @property
    def has_means(self) -> bool:
        """True if any variant has a ratio to the baseline."""
        return any(mean.cases for mean in self.means)

    @property
    def title(self) -> str:
        """The title of the heat map."""
        if not self.groups:
            return "Cases"
        if not self.compares:
            return self.metric.label.capitalize()
        if self.metric.name == "time":
            return f"Speed against {self.baseline}"
        is_memory = "bytes" in self.metric.name or "allocs" in self.metric.name
        return f"{'Memory' if is_memory else self.metric.label.capitalize()} against {self.baseline}"

    @property
    def averaged(self) -> str:
        """The cases behind the means: variants that failed or were not measured somewhere have fewer."""
        over = sorted({mean.cases for mean in self.means if mean.log_ratio is not None})
        if not over:
            return self.metric.label
        span = f"{over[0]} to {over[-1]}" if len(over) > 1 else f"{over[0]}"
        return f"{self.metric.label}, geometric mean over {span} {'case' if over[-1] == 1 else 'cases'}"


def heat_map(
    workloads: Sequence[RankedWorkload],
    standings: Mapping[tuple[str, str], VariantResult],
    commits: Sequence[Commit],
    curves: Mapping[tuple[str, str], Curve],
    *,
    variants: Sequence[str],
    metric: Metric,
    means: Sequence[Mean],
    opened: Collection[str],
    state: State,
    most_cases: int,
    toggles: bool,
    moves: Sequence[CellChange] = (),
) -> HeatMap:
    """The heat map of a metric. `opened` workloads show their cases, `toggles` says whether readers may close them."""
    drawing = _Drawing(commits, curves, standings, metric, tuple(variants), state, _by_series(moves, metric))
    groups = tuple(
        drawing.group(one, opened=one.workload in opened, most=most_cases, toggles=toggles) for one in workloads
    )
    baseline = baseline_in_words(result.baseline for result in standings.values())
    changes = tuple(map(drawing.tally, variants))
    recent = min(RECENTLY.commits, len(commits))
    return HeatMap(metric, tuple(variants), groups, tuple(means), baseline, changes, recent)


@dataclass(frozen=True)
class _Drawing:
    """The scale and commits shared by all rows of a heat map."""

    commits: Sequence[Commit]
    curves: Mapping[tuple[str, str], Curve]
    standings: Mapping[tuple[str, str], VariantResult]
    metric: Metric
    variants: tuple[str, ...]
    state: State
    moves: Mapping[tuple[str, str], Sequence[CellChange]]

    def group(self, one: RankedWorkload, *, opened: bool, most: int, toggles: bool) -> Group:
        project = self.state.project or ""
        href = links.workload(project, one.workload, machine=self.state.machine)
        several = len(one.cases) > 1
        visible_cases = one.cases[:most] if opened or not several else ()
        return Group(
            workload=one.workload,
            href=href,
            summary=self._summary(one, href) if several and toggles else None,
            rows=tuple(self._row(one.workload, case) for case in visible_cases),
            opened=opened and several,
            toggle=self.state.toggled(one.workload) if several and toggles else None,
            more=len(one.cases) - len(visible_cases) if opened else 0,
        )

    def _href(self, workload: str, case: str) -> str:
        return links.workload(self.state.project or "", workload, case=case, machine=self.state.machine)

    def _row(self, workload: str, case: str) -> Row:
        href = self._href(workload, case)
        places = {variant: self._place(self.standings.get((case, variant))) for variant in self.variants}
        newest = max(places.values(), default=-1)
        cells = tuple(self._cell(case, variant, href, outdated=places[variant] < newest) for variant in self.variants)
        return Row(
            "" if case == workload else bracket(case, workload), href, cells, case=case, stale=self._stale(newest)
        )

    def _summary(self, one: RankedWorkload, href: str) -> Row:
        cells = []
        for variant in self.variants:
            extremes = one.extremes.get(variant)
            if extremes is None:
                cells.append(_unmeasured(variant, href))
            elif extremes.worst.is_baseline or not (extremes.failed or extremes.compares):
                cells.append(self._range(one, variant, href, is_baseline=extremes.worst.is_baseline))
            else:
                target = self._href(one.workload, extremes.worst.case)
                worst = self._cell(extremes.worst.case, variant, target, outdated=False)
                every = [move for case in one.cases for move in self._lasting(case, variant)]
                worst = replace(worst, move=self._move(every))
                cells.append(_summarised(worst, extremes, self.metric, one.workload))
        newest = max(
            (self._place(self.standings.get((case, v))) for case in one.cases for v in self.variants), default=-1
        )
        return Row(f"{len(one.cases)} cases", href, tuple(cells), cases=len(one.cases), stale=self._stale(newest))

    def _cell(self, case: str, variant: str, href: str, *, outdated: bool) -> Cell:
        result = self.standings.get((case, variant))
        if result is None:
            return _unmeasured(variant, href)
        curve = self.curves.get((case, variant), ())
        sha = self._sha(self._place(result))
        moves, lasting = self.moves.get((case, variant), ()), self._lasting(case, variant)
        cell = _cell(
            result, curve, self.metric, href, outdated=outdated, sha=sha, ticks=_ticks(curve),
            move=self._move(lasting),
            recent=self._recent(curve, moves),
            drift="" if result.is_baseline else _drift(curve),
        )  # fmt: skip
        over = [short_of(move.sha) for move in moves if move not in lasting]
        return replace(cell, words=f"{cell.words}; failed at {over[-1]} and works again") if over else cell

    def _lasting(self, case: str, variant: str) -> Sequence[CellChange]:
        """The changes of a series that hold at its newest commit: a failure does not once it works again."""
        result = self.standings.get((case, variant))
        fails = result is not None and result.reading is None
        return [move for move in self.moves.get((case, variant), ()) if fails or move.tone != "failed"]

    def tally(self, variant: str) -> Tally:
        """The number of cases of a variant that changed, likely only where no change in that direction is sure."""
        tones = [{move.tone for move in of} for (_, which), of in self.moves.items() if which == variant]
        return Tally(
            variant,
            worse=sum("worse" in one for one in tones),
            better=sum("better" in one for one in tones),
            likely_worse=sum("likely-worse" in one and "worse" not in one for one in tones),
            likely_better=sum("likely-better" in one and "better" not in one for one in tones),
            failed=sum("failed" in one for one in tones),
        )

    def _move(self, moves: Sequence[CellChange]) -> LatestChange | None:
        """The gravest of some changes, of equal ones the newest."""
        known = [move for move in moves if move.tone != "plain"]
        if not known:
            return None
        move = min(reversed(known), key=lambda move: _GRAVITY.index(move.tone))
        # A change that is claimed is seen at once, however small.
        depth = 0 if move.tone == "unsure" else min(5, factors.depth(min(move.size, _FAR)) + 2)
        href = links.commit(self.state.project or "", move.sha, machine=self.state.machine)
        return LatestChange(move.tone, depth, move.amount, move.sha, href, move.words)

    def _recent(self, curve: Curve, moves: Sequence[CellChange]) -> tuple[str, ...]:
        commits = self.commits[-RECENTLY.commits :]
        results = curve[-RECENTLY.commits :] or [None] * len(commits)
        by_sha: dict[str, str] = {}
        for move in moves:
            by_sha[move.sha] = min(by_sha.get(move.sha, "plain"), move.tone, key=_GRAVITY.index)
        return tuple(
            "" if one is None else "failed" if isinstance(one, Failure) else by_sha.get(commit.sha, "plain")
            for commit, one in zip(commits, results, strict=True)
        )

    def _range(self, one: RankedWorkload, variant: str, href: str, *, is_baseline: bool) -> Cell:
        """The baseline of several cases, or what has none: from the smallest to the largest value."""
        values = sorted(
            result.reading.value
            for case in one.cases
            if (result := self.standings.get((case, variant))) and result.reading
        )
        if not values:
            return _unmeasured(variant, href)
        first, last = (units.quantity(value, self.metric.unit) for value in (values[0], values[-1]))
        role = "baseline" if is_baseline else ""
        doubt = f"to {last}" if last != first else role
        span = f"{first} to {last}" if last != first else first
        says = f"{span} over {len(values)} cases{': the baseline' if role else ''}"
        return Cell(variant, "plain", 0, "", first, says, doubt, href)

    def _place(self, result: VariantResult | None) -> int:
        """The place of a standing's commit; -1 for one that is older than all of the history."""
        return -1 if result is None else self._places.get(result.commit_id, -1)

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {commit.id: place for place, commit in enumerate(self.commits) if commit.id is not None}

    def _sha(self, place: int) -> str | None:
        return self.commits[place].sha if place >= 0 else None

    def _stale(self, newest: int) -> str:
        """The distance of a whole row behind the newest commit, if there is any."""
        behind = len(self.commits) - 1 - newest
        if newest < 0:
            return f"older than {counted(len(self.commits), 'commit')}"
        return "" if behind < STALE_AFTER else f"{behind} commits old"


def _by_series(moves: Sequence[CellChange], metric: Metric) -> Mapping[tuple[str, str], Sequence[CellChange]]:
    """The changes of a metric, and failures, by case and variant."""
    known: dict[tuple[str, str], list[CellChange]] = {}
    for move in moves:
        if move.metric == metric.name or move.tone == "failed":
            known.setdefault((move.case, move.variant), []).append(move)
    return known


def _drift(curve: Curve) -> str:
    """The change of the ratio over the newest commits, which is no claim; of what has no ratio there is none."""
    marks = [one for one in curve[-RECENTLY.commits - 1 :] if isinstance(one, Mark)]
    logs = [mark.ratio.log_ratio for mark in marks if mark.ratio.log_ratio is not None]
    return factors.shift(logs[-1] - logs[0]) if len(logs) > 1 else ""


def bracket(case: str, workload: str) -> str:
    """The case without its workload's name, which a table says once: n=100,act=tanh,f4,cpu."""
    inner = case.removeprefix(workload)
    return inner[1:-1].replace(",", ", ") if len(inner) > 2 and inner.startswith("[") and inner.endswith("]") else case


def _unmeasured(variant: str, href: str) -> Cell:
    return Cell(variant, "nothing", 0, "", "–", "not measured", "", href)


def _cell(result: VariantResult, curve: Curve, metric: Metric, href: str, *, outdated: bool, **history: Any) -> Cell:
    """The cell of a result, with what its `history` says: `sha`, `ticks`, `move`, `recent` and `drift`."""
    variant, reading = result.variant, result.reading
    if reading is None:
        failure = result.failure or ""
        return Cell(
            variant, "failed", 0, factors.sign("failed"), "failed", failure, failure, href,
            outcome="failed", **history,
        )  # fmt: skip
    if result.is_baseline:
        text = units.quantity(reading.value, metric.unit)
        says = f"{units.exact(reading.value, metric.unit)}: the baseline"
        return Cell(
            variant, "plain", 0, "", text, says, "baseline", href, measured=reading.value,
            against_baseline=False, **history,
        )  # fmt: skip
    return Cell(
        variant=variant,
        tone=factors.tone(reading.outcome, bigger_is_better=metric.bigger_is_better),
        depth=0 if reading.outcome == "ambiguous" else _depth(reading),
        mark=factors.mark(reading.outcome, bigger_is_better=metric.bigger_is_better),
        value=_value(reading, metric, beside_interval=not outdated),
        words=_words(reading, result.base, metric),
        doubt=_doubt(reading, result.base, metric, outdated=outdated),
        href=href,
        outcome=reading.outcome,
        measured=reading.value,
        outdated=outdated,
        against_baseline=not curve or _has_ratio(curve),
        **factors.numbers_of(reading.ratio),
        **history,
    )


def _summarised(cell: Cell, extremes: Extremes, metric: Metric, workload: str) -> Cell:
    """The cell of the worst case, with what there is to say of the others."""
    best, worst = extremes.best.reading, extremes.worst.reading
    parts = []
    if extremes.failed:
        parts.append(f"{extremes.failed} of {extremes.cases} failed")
    if best and extremes.best is not extremes.worst:
        parts.append(f"best {_value(best, metric)}")
    if parts and worst and worst.is_busy and not metric.exact:
        parts.append(_BUSY)
    where = bracket(extremes.worst.case, workload)
    cell = replace(cell, words=f"worst of {extremes.cases}, {where}: {cell.words}")
    # What is said of the others takes the place of its interval, and the decimals that stood beside that go with it.
    alone = _value(worst, metric) if worst else cell.value
    return replace(cell, doubt=", ".join(parts), value=alone) if parts else cell


def _depth(reading: Reading) -> int:
    if reading.ratio.log_ratio is None:  # nothing left where the baseline has something, or the other way round
        return 5 if reading.outcome in {"less", "more"} else 0
    return factors.depth(reading.ratio.log_ratio)


def _value(reading: Reading, metric: Metric, *, beside_interval: bool = False) -> str:
    if reading.ratio.log_ratio is not None:
        return factors.shown(reading.ratio) if beside_interval else factors.factor(reading.ratio.log_ratio)
    return units.quantity(reading.value, metric.unit)


def _words(reading: Reading, base: float | None, metric: Metric) -> str:
    if reading.ratio.log_ratio is not None:
        return factors.words(
            reading.ratio.log_ratio, metric=metric.name, outcome=reading.outcome, baseline=reading.against
        )
    if reading.outcome == "equal":
        return f"same as {reading.against}"
    if reading.outcome in {"less", "more"}:
        return factors.without_ratio(reading.value, base, unit=metric.unit, baseline=reading.against)
    return units.exact(reading.value, metric.unit)


def _doubt(reading: Reading, base: float | None, metric: Metric, *, outdated: bool) -> str:
    if outdated:
        return "from an older commit"
    if metric.exact:
        return (
            _words(reading, base, metric)
            if reading.ratio.log_ratio is None
            else units.quantity(reading.value, metric.unit)
        )
    interval, groups = factors.bounds(reading.ratio), reading.ratio.n
    if not interval:
        return "" if reading.ratio.log_ratio is None else "no interval"
    parts = [interval]
    if reading.is_busy:
        parts.append(_BUSY)
    elif reading.outcome == "ambiguous":
        parts.append("ambiguous")
    elif groups is not None and groups < FEW_GROUPS:
        parts.append(counted(groups, "group"))
    return ", ".join(parts)


def _has_ratio(curve: Curve) -> bool:
    return any(isinstance(one, Mark) and (one.ratio.log_ratio is not None or one.outcome) for one in curve)


def _ticks(curve: Curve) -> tuple[Tick, ...]:
    """The history of the ratio; of a series without a baseline, of the value against its newest.

    Where any of these values is zero or less there is no such ratio: then each lies as far from the newest as they differ,
    as a share of the largest, which is nearly the same where they differ little.
    """
    visible = curve[-SPARK_COMMITS:]
    if _has_ratio(curve):
        return tuple(
            [
                _made(Tick, (one.ratio, False, one.ratio[0] is None and one.value <= 0 and one.outcome is not None))
                if isinstance(one, Mark)
                else _NO_TICK
                if one is None
                else _FAILED
                for one in visible
            ]
        )
    values = [one.value for one in visible if isinstance(one, Mark)]
    newest, least, largest = (values[-1], min(values), max(map(abs, values)) or 1.0) if values else (0.0, 0.0, 1.0)
    return tuple(
        Tick(Ratio(math.log(one.value / newest) if least > 0 else (one.value - newest) / largest))
        if isinstance(one, Mark)
        else Tick(failed=one is not None)
        for one in visible
    )


_NO_TICK, _FAILED = Tick(), Tick(failed=True)
