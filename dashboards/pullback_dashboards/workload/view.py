"""The content of the workload page, as plain values: the table under the plots, and the marks that the plots draw.

The table and the figure are two forms of the same marks, so what is drawn can be read and what is read was drawn.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Literal, NamedTuple, get_args

from fastapi import Query

from pullback_dashboards import links
from pullback_dashboards.history import (
    Commit,
    Failure,
    History,
    Line,
    Metric,
    Result,
    baseline_in_words,
    doubt_of_count,
)
from pullback_dashboards.wording import factors, units
from pullback_dashboards.wording.busyness import BUSY
from pullback_dashboards.workload.annotations import CountChange, Event, EventSentence, events, other_levels
from pullback_dashboards.workload.scales import Scale, is_log
from pullback_service.comparisons.judging import Judgement
from pullback_service.measured_code.code_identity import CodeIdentity, may_differ_by_the_commit, other_level
from pullback_service.ratio import NO_RATIO, Ratio
from pullback_service.readings.reading import Reading

HorizontalScale = Literal["order", "date"]
ValueScale = Literal["relative", "parent", "first", "absolute"]
Last = Literal["100", "500", "5000"]
ROWS_ON_A_PAGE = 20


@dataclass(frozen=True)
class State:
    """Everything that the address of the page decides."""

    case: str | None = None
    machine: str | None = None
    memory: str | None = None
    x: HorizontalScale = "order"
    y: ValueScale = "relative"
    scale: Scale = "auto"
    last: Last = "100"
    page: Annotated[int, Query(ge=1, le=1000)] = 1

    def parameters(self, **changed: str | int | None) -> dict[str, str | None]:
        """The query of an address, without what is the default anyway."""
        state = replace(self, **changed)  # type: ignore[arg-type] # values come from the choices below
        plain = State()
        return {
            key: str(value) if value != getattr(plain, key) else None
            for key, value in ((one.name, getattr(state, one.name)) for one in fields(State))
        }


CHOICES: dict[str, tuple[str, ...]] = {
    "x": get_args(HorizontalScale),
    "y": get_args(ValueScale),
    "scale": get_args(Scale),
    "last": get_args(Last),
}


class Mark(NamedTuple):
    """One variant at one commit in one metric: the numbers, and the words for them.

    Its words, and its place in the history, are computed when they are read: a plot of a hundred commits draws a
    thousand marks, and the page puts a fifth of them into words.
    """

    place: int
    line: Line
    result: Result
    before: Reading | None
    history: History

    @property
    def sha(self) -> str:
        """The hash of the commit."""
        return self.history.commits[self.place].sha

    @property
    def measured(self) -> tuple[CodeIdentity, CodeIdentity]:
        """The code of `before` and of this one."""
        return self.history.measured_of(self.before), self.history.measured_of(self.result)

    @property
    def unsure(self) -> str:
        """The reason why a change since `before` claims nothing; empty if it may."""
        now, before, line = self.reading, self.before, self.line
        if now is None:
            return ""
        return doubt_of_count(self.history.verdict(line, before, now)) or _disturbed(now, before, line.metric)

    @property
    def moved(self) -> Judgement | None:
        """The likely change of the value since `before`."""
        return None if self.reading is None else self.history.move(self.line, self.before, self.reading)

    @property
    def variant(self) -> str:
        """The name of the variant."""
        return self.line.variant

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return self.line.metric.name

    @property
    def reading(self) -> Reading | None:
        """The reading; None of a failure."""
        return self.result if isinstance(self.result, Reading) else None

    @property
    def failure(self) -> str | None:
        """The reason why there are no numbers."""
        return self.result.message if isinstance(self.result, Failure) else None

    @property
    def value(self) -> float | None:
        """The measured value."""
        return self.result.value if isinstance(self.result, Reading) else None

    @property
    def ratio(self) -> Ratio:
        """The ratio to the baseline."""
        return self.result.ratio if isinstance(self.result, Reading) else NO_RATIO

    @property
    def log_ratio(self) -> float | None:
        """The natural log of it."""
        return self.ratio.log_ratio

    @property
    def low(self) -> float | None:
        """Its lower end."""
        return self.ratio.low

    @property
    def high(self) -> float | None:
        """Its upper end."""
        return self.ratio.high

    @property
    def groups(self) -> int | None:
        """The number of groups behind it."""
        return self.ratio.n

    @property
    def outcome(self) -> str | None:
        """The outcome against the baseline, or the failure."""
        return self.result.outcome if isinstance(self.result, Reading) else "failed"

    @property
    def remark(self) -> str:
        """Remarks that a reader needs beside it."""
        return "" if self.reading is None else _remark(self.reading)

    @property
    def tone(self) -> str:
        """Better, worse or neither."""
        return factors.tone(self.outcome, bigger_is_better=self.line.metric.bigger_is_better)

    @property
    def sign(self) -> str:
        """The same without colour."""
        return factors.mark(self.outcome, bigger_is_better=self.line.metric.bigger_is_better)

    @property
    def shown(self) -> str:
        """The value with its unit."""
        return units.quantity(self.value, self.line.metric.unit)

    @property
    def factor(self) -> str:
        """The ratio as a factor."""
        return factors.shown(self.ratio)

    @property
    def doubt(self) -> str:
        """Between which factors it lies."""
        return "" if self.line.metric.exact else factors.bounds(self.ratio)

    @property
    def words(self) -> str:
        """The result against the baseline in words."""
        return _words(self)

    @property
    def since(self) -> str:
        """The change since the commit that it follows."""
        return _since(self)

    @property
    def since_number(self) -> float | None:
        """The same as a number: the difference of counts, of all else the factor of the ratios; None where nothing changed."""
        return _since_number(self)

    @property
    def since_tone(self) -> str:
        """The tone of the change: better, worse, or unknown."""
        tone = _since_tone(self)
        return "unsure" if tone and self.unsure else tone

    @property
    def since_reason(self) -> str:
        """The reason why it is unknown."""
        return self.unsure if self.since_tone else ""

    @property
    def report_href(self) -> str | None:
        """The address of its report."""
        return links.report(self.result.report_id) if self.result.report_id else None

    @property
    def compares(self) -> bool:
        """True if it compares with the baseline."""
        return self.log_ratio is not None or self.outcome not in {None, "failed"}

    @property
    def said(self) -> str:
        """Its words, or the value where there is nothing to compare it with."""
        return self.words if self.compares or self.failure else self.shown

    def plain(self) -> dict[str, str | float | None]:
        """All of it, for JSON."""
        return {name: getattr(self, name) for name in _SAID}


_SAID = (
    "place", "sha", "variant", "metric", "value", "log_ratio", "low", "high", "groups", "outcome", "failure", "remark",
    "tone", "sign", "shown", "factor", "doubt", "words", "since", "since_tone", "since_reason", "report_href",
)  # fmt: skip


@dataclass(frozen=True)
class Track:
    """The marks of one variant in one metric, oldest first; commits without a measurement have none."""

    variant: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Plot:
    """One metric: a track per variant, on a linear axis or a logarithmic one; `own`: an axis of one variant, which is named there."""

    metric: Metric
    tracks: tuple[Track, ...]
    log: bool = False
    own: bool = False

    @property
    def variants(self) -> tuple[str, ...]:
        """Those that were measured in it, which are the columns of the table: nobody counts the arrays of other engines."""
        return tuple(track.variant for track in self.tracks if track.marks) or tuple(t.variant for t in self.tracks)

    @property
    def scale(self) -> units.Scale:
        """The unit of its values."""
        return self._scale

    @cached_property
    def _scale(self) -> units.Scale:  # JSON has what a public one was computed to
        results = (mark.result for track in self.tracks for mark in track.marks)
        return units.scale_for([one.value for one in results if isinstance(one, Reading)], self.metric.unit)


@dataclass(frozen=True)
class TableRow:
    """A commit in the table: the marks by variant and metric, or the reason why the case failed."""

    place: int
    commit: Commit
    href: str
    failure: str | None
    marks: dict[str, Mark]
    events: tuple[Event, ...] = ()


class Column(NamedTuple):
    """A column of the table: the key of its marks in a row, its variant, its name on a phone, and the class of the first of a metric."""

    key: str
    variant: str
    label: str
    edge: str


@dataclass(frozen=True)
class NewestResult:
    """The newest commit's result of a variant, in words; an older one has its commit beside it."""

    variant: str
    words: str


@dataclass(frozen=True)
class WorkloadView:
    """One case of a workload across commits, on one machine."""

    project: str
    workload: str
    case: str
    state: State
    commits: tuple[Commit, ...]
    variants: tuple[str, ...]
    plots: tuple[Plot, ...]
    rows: tuple[TableRow, ...]
    lede: tuple[NewestResult, ...]
    events: tuple[Event, ...] = ()
    thinned: bool = False

    @property
    def compares(self) -> bool:
        """True if any variant has a ratio to the baseline."""
        return _compares(self.plots)

    @property
    def drawn(self) -> tuple[Plot, ...]:
        """The plots as they are drawn: values that lie ten times apart have an axis for each variant, on which steps are to be seen."""
        if self.state.y != "absolute" or self.state.scale != "auto":
            return self.plots
        drawn: list[Plot] = []
        for plot in self.plots:
            tracks = [track for track in plot.tracks if track.marks]
            own = [replace(plot, tracks=(track,), log=False, own=True) for track in tracks]
            drawn += own if plot.log and len(own) > 1 else [plot]
        return tuple(drawn)

    @property
    def against(self) -> str:
        """The commit that each curve is compared with, empty where it is not compared with its own past."""
        return {"first": "first commit", "parent": "parent"}.get(self.state.y, "")

    @cached_property
    def _firsts(self) -> dict[tuple[str, str], float]:
        """The natural log of the first height of each track, by variant and metric: of its ratios, else of its values."""
        firsts = {}
        for plot in self.plots:
            for track in plot.tracks:
                logs = [log for mark in track.marks if (log := _log_of(mark.reading)) is not None]
                if logs:
                    firsts[track.variant, plot.metric.name] = logs[0]
        return firsts

    def change_of(self, mark: Mark) -> float | None:
        """The factor to the commit it is compared with, of the ratio to the baseline where there is one; of zero and less there is none.

        Of a baseline, whose values drift with the machine, there is none either, and none to a parent of another level.
        """
        log = _log_of(mark.reading)
        if self.state.y == "parent":
            past = _log_of(mark.before) if other_level(*mark.measured) is None else None
        else:
            past = self._firsts.get((mark.variant, mark.metric))
        if past is None or log is None or (self.compares and mark.line.is_baseline):
            return None
        return math.exp(log - past)

    @property
    def baseline(self) -> str:
        """The variant that ratios are against."""
        return baseline_in_words(
            mark.line.baseline for plot in self.plots for track in plot.tracks for mark in track.marks[-1:]
        )

    @property
    def leaves_out_values(self) -> bool:
        """True if a plot has values that its logarithmic axis has no place for: zero and less."""
        return any(
            mark.value is not None and mark.value <= 0
            for plot in self.plots
            if plot.log
            for track in plot.tracks
            for mark in track.marks
        )

    @property
    def leaves_out_what_has_no_ratio(self) -> bool:
        """True if plots of factors lack something that was measured, since one side is zero or less, or was not paired."""
        baseline = self.baseline
        return self.state.y == "relative" and any(
            mark.ratio.log_ratio is None and mark.value is not None and relative_height(mark, log=False) is None
            for plot in self.plots
            for track in plot.tracks
            if track.variant != baseline
            for mark in track.marks
        )

    @property
    def counts_ambiguously(self) -> bool:
        """True if a count changed that may be another software's doing."""
        return any(event.lane == "counts" and event.tone == "unsure" for event in self.events)

    @property
    def named(self) -> str:
        """The metrics that are plotted, as the beginning of a sentence."""
        return " and ".join(plot.metric.label for plot in self.plots).capitalize()

    @property
    def columns(self) -> tuple["Column", ...]:
        """The table's columns behind the commits."""
        several = len(self.plots) > 1
        return tuple(
            Column(
                key(variant, plot.metric.name),
                variant,
                f"{plot.metric.label} {variant}" if several else variant,
                "" if number else " edge",
            )
            for plot in self.plots
            for number, variant in enumerate(plot.variants)
        )

    @property
    def shown(self) -> tuple[TableRow, ...]:
        """The rows of the table's present page."""
        first = (self.state.page - 1) * ROWS_ON_A_PAGE
        return self.rows[first : first + ROWS_ON_A_PAGE]

    @property
    def pages(self) -> int:
        """The number of the table's pages."""
        return max(1, -(-len(self.rows) // ROWS_ON_A_PAGE))

    @property
    def failures(self) -> tuple[TableRow, ...]:
        """Commits at which the whole case failed."""
        return tuple(row for row in self.rows if row.failure)


def workload_view(
    history: History,
    *,
    project: str,
    workload: str,
    state: State,
    counts: Sequence[CountChange] = (),
    others: Sequence[EventSentence] = (),
    thinned: bool = False,
) -> WorkloadView:
    """The view of `state.case`: speed first, then the memory metric that the state names. Without ratios it has values."""
    case = state.case or history.cases(workload)[0]
    metrics = [metric for metric in history.metrics if metric.name in {"time", state.memory}]
    lines = [line for line in history.lines if line.case == case]
    variants = tuple(v for v in history.variants if any(line.variant == v for line in lines))
    plots = tuple(
        Plot(metric, tuple(_track(history, case, variant, metric) for variant in variants)) for metric in metrics
    )
    claims = (claim for claim in history.claims if claim.case == case)
    happened = events(counts, claims, [*other_levels(history, lines), *others])
    rows = _rows(history, lines, plots, happened, lambda sha: links.case(project, sha, case, machine=state.machine))
    if not _compares(plots) and state.y == "relative":
        state = replace(state, y="absolute")
    plots = tuple(replace(plot, log=_is_log(plot, state)) for plot in plots)
    return WorkloadView(
        project, workload, case, state, history.commits, variants, plots, tuple(rows), lede=_lede(plots, history.commits),
        events=happened, thinned=thinned,
    )  # fmt: skip


def _is_log(plot: Plot, state: State) -> bool:
    """True if the axis is logarithmic: of changes over time it is unless asked otherwise, so that they are not flat."""
    return state.scale != "linear" if state.y in {"first", "parent"} else is_log(state.scale, _heights(plot, state.y))


def _heights(plot: Plot, y: ValueScale) -> Iterator[list[float]]:
    """The heights of the curves of a plot, the line of the baseline among them."""
    if y == "relative":
        yield [1.0]
    for track in plot.tracks:
        if y == "absolute":
            yield [mark.value for mark in track.marks if mark.value is not None]
        else:
            heights = (relative_height(mark, log=False) for mark in track.marks)
            yield [height for height in heights if height is not None]


def _log_of(reading: Reading | None) -> float | None:
    if reading is None:
        return None
    if reading.ratio.log_ratio is not None:
        return reading.ratio.log_ratio
    return math.log(reading.value) if reading.value > 0 else None


def relative_height(mark: Mark, *, log: bool) -> float | None:
    """The factor; a count of zero has no ratio, but on a linear axis its place is plain."""
    result = mark.result
    if isinstance(result, Failure):
        return None
    if result.ratio.log_ratio is not None:
        return math.exp(result.ratio.log_ratio)
    return 0.0 if result.value == 0 and result.outcome == "less" and not log else None


def _compares(plots: Sequence[Plot]) -> bool:
    return any(
        mark.compares for plot in plots for track in plot.tracks for mark in track.marks if not mark.line.is_baseline
    )


def beside_time(metrics: Iterable[Metric]) -> str:
    """The common name of the second plot's metrics: another tool's may be times as well."""
    return "memory" if all(metric.name.endswith(("_bytes", "_allocs")) for metric in metrics) else "other metrics"


def key(variant: str, metric: str) -> str:
    """The name of a cell in a row of the table."""
    return f"{variant} {metric}"


def _track(history: History, case: str, variant: str, metric: Metric) -> Track:
    line = history.find(case, variant, metric.name)
    return Track(variant, tuple(_marks(line, history)) if line else ())


def _marks(line: Line, history: History) -> Iterator[Mark]:
    for place, result, before in history.steps(line):
        yield Mark(place, line, result, before, history)


def _disturbed(now: Reading, before: Reading | None, metric: Metric) -> str:
    """The reason why a changed ratio claims nothing, if other processes used the machine."""
    if metric.exact or before is None or not (now.is_busy or before.is_busy):
        return ""
    return "One of the two was measured on a busy machine."


def _remark(reading: Reading) -> str:
    """Remarks that a reader needs beside a reading."""
    parts = []
    if reading.is_busy:
        parts.append("busy machine: other processes ran while it was timed")
    if reading.dirty:
        parts.append("with uncommitted changes")
    return ", ".join(parts)


def _words(mark: Mark) -> str:
    reading, line = mark.reading, mark.line
    if reading is None:
        return f"failed: {mark.failure}"
    if line.is_baseline:
        return "the baseline"
    if reading.ratio.log_ratio is not None:
        return factors.words(
            reading.ratio.log_ratio, metric=line.metric.name, outcome=reading.outcome, baseline=reading.against
        )
    if reading.outcome in {"less", "more"}:
        base = line.base_at(mark.place)
        return factors.without_ratio(reading.value, base, unit=line.metric.unit, baseline=reading.against)
    return f"same as {reading.against}" if reading.outcome == "equal" else "no ratio to a baseline"


def _since(mark: Mark) -> str:
    """The change since the commit that was followed: of what is timed the ratio's, or the value's where that `moved`."""
    difference, metric = _difference(mark), mark.line.metric
    if difference is None:
        return ""
    if not metric.exact:
        return factors.shift(difference)
    return units.change(difference, metric.unit) if difference else "unchanged"


def _since_number(mark: Mark) -> float | None:
    difference = _difference(mark)
    if not difference:
        return None
    return difference if mark.line.metric.exact else factors.number(difference)


def _difference(mark: Mark) -> float | None:
    """The difference of values for counts, of log ratios for all other metrics, or the likely difference of values."""
    now, before = mark.reading, mark.before
    if before is None or now is None:
        return None
    moved = mark.moved
    if moved is not None:
        return moved.ratio.log_ratio
    if mark.line.metric.exact:
        return now.value - before.value
    older, newer = before.ratio.log_ratio, now.ratio.log_ratio
    return None if older is None or newer is None else newer - older


def _since_tone(mark: Mark) -> str:
    """The tone of a change: better or worse, where a count is another or a value `moved`; else empty."""
    now, before, metric = mark.reading, mark.before, mark.line.metric
    if before is None or now is None or not may_differ_by_the_commit(*mark.measured):
        return ""
    if not metric.exact:
        moved = mark.moved
        return factors.tone(moved.outcome, bigger_is_better=metric.bigger_is_better) if moved else ""
    if now.value == before.value:
        return ""
    return factors.tone("less" if now.value < before.value else "more", bigger_is_better=metric.bigger_is_better)


def _rows(
    history: History,
    lines: list[Line],
    plots: tuple[Plot, ...],
    happened: Sequence[Event],
    address: Callable[[str], str],
) -> Iterator[TableRow]:
    there: dict[int, list[Event]] = {}
    for event in happened:
        there.setdefault(event.place, []).append(event)
    by_place: dict[int, dict[str, Mark]] = {}
    for plot in plots:
        for track in plot.tracks:
            named = key(track.variant, plot.metric.name)
            for mark in track.marks:
                by_place.setdefault(mark.place, {})[named] = mark
    for place in sorted(by_place, reverse=True):
        commit = history.commits[place]
        results = [result for line in lines if (result := line.results[place]) is not None]
        reasons = [result.message for result in results if isinstance(result, Failure)]
        failed = reasons[0] if reasons and len(reasons) == len(results) else None
        yield TableRow(place, commit, address(commit.sha), failed, by_place[place], tuple(there.get(place, ())))


def _lede(plots: tuple[Plot, ...], commits: Sequence[Commit]) -> tuple[NewestResult, ...]:
    """The newest commit's results, variant by variant: speed first, then memory. Older ones have their commits."""
    newest = newest_place(plots)
    said: dict[str, list[tuple[str, str]]] = {}
    for plot in plots:
        for track in plot.tracks:
            if not track.marks or track.marks[-1].line.is_baseline:
                continue
            mark = track.marks[-1]
            words = mark.said if plot.metric.name == "time" else f"{plot.metric.label} {mark.said}"
            said.setdefault(track.variant, []).append((words, ", ".join(qualifiers(mark, commits, newest))))
    return tuple(NewestResult(variant, ", ".join(_qualified(parts))) for variant, parts in said.items())


def _qualified(parts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Each with its qualifiers in brackets, but those that several have in a row stand once, behind the last of them."""
    for number, (words, behind) in enumerate(parts):
        follows = parts[number + 1][1] if number + 1 < len(parts) else ""
        yield f"{words} ({behind})" if behind and behind != follows else words


def newest_place(plots: Iterable[Plot]) -> int:
    """The place of the newest commit that says anything of the case."""
    return max((track.marks[-1].place for plot in plots for track in plot.tracks if track.marks), default=0)


def qualifiers(mark: Mark, commits: Sequence[Commit], newest: int) -> Iterator[str]:
    """The qualifiers of a result that stands alone: its commit if not the newest, and that it may be disturbed."""
    if mark.place < newest:
        yield f"at {commits[mark.place].short}"
    if disturbed(mark):
        yield BUSY


def disturbed(mark: Mark) -> bool:
    """True if something else may have moved it: it used the machine, which moves times and leaves counts alone."""
    return mark.reading is not None and mark.reading.is_busy and not mark.line.metric.exact
