"""What the overview shows, as plain values: a history in, cells with words, doubt and sparkline out."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from pullback_dashboards import links
from pullback_dashboards.charts.palette import BASELINE
from pullback_dashboards.charts.sparkline import Tick
from pullback_dashboards.history import Commit, History, Line, Metric, Reading
from pullback_dashboards.wording import factors, units

SPARK_COMMITS = 30
_NEWS_ITEMS = 8
LATELY = 5  # commits
_NEWS_CASES = 3


@dataclass(frozen=True)
class Cell:
    """One variant of one case at its newest commit."""

    variant: str
    tone: str
    depth: int
    mark: str
    value: str
    words: str
    doubt: str
    href: str
    outcome: str | None = None
    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    measured: float | None = None
    sha: str | None = None
    outdated: bool = False
    ticks: tuple[Tick, ...] = ()
    against_baseline: bool = True


@dataclass(frozen=True)
class Row:
    """One case."""

    case: str
    label: str
    href: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Group:
    """The cases of one workload."""

    workload: str
    href: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Mean:
    """A variant over all cases: the geometric mean of its factors and what it was taken over."""

    variant: str
    value: str
    words: str
    tone: str
    depth: int
    cases: int
    log_ratio: float | None


@dataclass(frozen=True)
class Where:
    """A case that a piece of news is about."""

    case: str
    href: str


@dataclass(frozen=True)
class News:
    """One change between a commit and the one measured before it, in all the cases that show the same."""

    tone: str
    mark: str
    variant: str
    text: str
    note: str
    cases: tuple[Where, ...]
    more: int
    sha: str
    title: str | None
    commit_href: str


@dataclass(frozen=True)
class HeatMap:
    """Cases by variants in one metric, and the mean of every column."""

    metric: Metric
    variants: tuple[str, ...]
    groups: tuple[Group, ...]
    means: tuple[Mean, ...]


def heat_map(history: History, *, project: str, metric: Metric, machine: str | None) -> HeatMap:
    """The heat map of a metric."""
    variants = history.variants
    groups = tuple(
        Group(workload, links.workload(project, workload, machine=machine), rows)
        for workload in history.workloads
        if (rows := tuple(_rows(history, project, workload, metric, machine)))
    )
    means = tuple(_mean(variant, groups, metric) for variant in variants)
    return HeatMap(metric, variants, groups, means)


def news(history: History, *, project: str, machine: str | None) -> tuple[News, ...]:
    """What changed lately, newest commit first, the largest change of a commit first; one item for the same in many cases.

    Exact metrics: any change since the last measured commit. Time: a ratio to the baseline that moved by more than the
    floor with intervals that do not overlap; worded as a move of the ratio, for no paired comparison confirmed it.
    """
    found = [change for line in history.lines for change in _changes(line, history.commits)]
    found.sort(key=lambda change: (-change.place, -change.size))
    together: dict[tuple[int, str, str], list[_Change]] = {}
    for change in found:
        together.setdefault((change.place, change.line.variant, change.text), []).append(change)
    return tuple(
        _told(same, history.commits[same[0].place], project, machine) for same in list(together.values())[:_NEWS_ITEMS]
    )


def _told(same: list["_Change"], commit: Commit, project: str, machine: str | None) -> News:
    first = same[0]
    return News(
        tone=factors.tone(first.outcome),
        mark=factors.mark(first.outcome),
        variant=first.line.variant,
        text=first.text,
        note=first.note,
        cases=tuple(
            Where(c.line.case, links.case(project, commit.sha, c.line.case, machine=machine))
            for c in same[:_NEWS_CASES]
        ),
        more=max(0, len(same) - _NEWS_CASES),
        sha=commit.sha,
        title=commit.title,
        commit_href=links.commit(project, commit.sha),
    )


def bracket(case: str, workload: str) -> str:
    """The case without its workload's name, which a table says once: n=100,act=tanh,f4,cpu."""
    inner = case.removeprefix(workload)
    return inner[1:-1].replace(",", ", ") if inner.startswith("[") and inner.endswith("]") else case


def _rows(history: History, project: str, workload: str, metric: Metric, machine: str | None) -> Iterator[Row]:
    for case in history.cases(workload):
        href = links.workload(project, workload, case=case, machine=machine)
        lines = {variant: history.find(case, variant, metric.name) for variant in history.variants}
        if not any(line and line.latest for line in lines.values()):
            continue
        newest = max(line.latest[0] for line in lines.values() if line and line.latest)
        cells = tuple(_cell(variant, line, newest, history.commits, href) for variant, line in lines.items())
        yield Row(case, bracket(case, workload), href, cells)


def _cell(variant: str, line: Line | None, newest: int, commits: tuple[Commit, ...], href: str) -> Cell:
    found = line.latest if line else None
    if line is None or found is None:
        return Cell(variant, "nothing", 0, "", "–", "not measured", "not measured", href)
    place, reading = found
    metric = line.metric
    if reading.failure:
        return Cell(
            variant, "failed", 0, factors.mark("failed"), "failed", reading.failure, reading.failure, href,
            outcome="failed", sha=commits[place].sha, ticks=_ticks(line),
        )  # fmt: skip
    if variant == BASELINE:
        text = units.quantity(reading.value, metric.unit)
        says = f"{units.exact(reading.value, metric.unit)}: the baseline"
        return Cell(
            variant, "plain", 0, "", text, says, "baseline", href, measured=reading.value, sha=commits[place].sha
        )
    return Cell(
        variant=variant,
        tone=factors.tone(reading.outcome, bigger_is_better=metric.bigger_is_better),
        depth=0 if reading.outcome == "ambiguous" else _depth(reading),
        mark=factors.mark(reading.outcome),
        value=_value(reading, metric),
        words=_words(reading, metric),
        doubt=_doubt(reading, metric, outdated=place < newest),
        href=href,
        outcome=reading.outcome,
        log_ratio=reading.log_ratio,
        low=reading.low,
        high=reading.high,
        measured=reading.value,
        sha=commits[place].sha,
        outdated=place < newest,
        ticks=_ticks(line),
        against_baseline=_has_ratio(line),
    )


def _depth(reading: Reading) -> int:
    if reading.log_ratio is None:  # nothing left where the baseline has something, or the other way round
        return 5 if reading.outcome in {"less", "more"} else 0
    return factors.depth(reading.log_ratio)


def _value(reading: Reading, metric: Metric) -> str:
    if reading.log_ratio is not None:
        return factors.factor(reading.log_ratio)
    return units.quantity(reading.value, metric.unit)


def _words(reading: Reading, metric: Metric) -> str:
    if reading.log_ratio is not None:
        return factors.words(reading.log_ratio, metric=metric.name, outcome=reading.outcome, baseline=BASELINE)
    if reading.outcome == "equal":
        return f"same as {BASELINE}"
    if reading.outcome in {"less", "more"}:
        return factors.without_ratio(reading.outcome, baseline=BASELINE)
    return f"no ratio to {BASELINE} was measured"


def _doubt(reading: Reading, metric: Metric, *, outdated: bool) -> str:
    if outdated:
        return "from an older commit"
    if metric.exact:
        return _words(reading, metric) if reading.log_ratio is None else units.quantity(reading.value, metric.unit)
    if reading.low is None or reading.high is None:
        return "no interval"
    span = factors.interval(reading.low, reading.high)
    if reading.contaminated:
        return f"{span}, disturbed"
    return f"{span}, ambiguous" if reading.outcome == "ambiguous" else span


def _has_ratio(line: Line) -> bool:
    return any(r and (r.log_ratio is not None or r.outcome) for r in line.readings)


def _ticks(line: Line) -> tuple[Tick, ...]:
    """The history of the ratio; of a series without a baseline, of the value against its newest."""
    readings = line.readings[-SPARK_COMMITS:]
    if _has_ratio(line):
        return tuple(_tick(reading) for reading in readings)
    values = [r.value for r in readings if r and r.value]
    return tuple(
        Tick(math.log(r.value / values[-1]))
        if r and r.value and r.value > 0 < values[-1]
        else Tick(failed=bool(r and r.failure))
        for r in readings
    )


def _tick(reading: Reading | None) -> Tick:
    if reading is None:
        return Tick()
    nothing = reading.log_ratio is None and reading.value == 0 and reading.outcome is not None
    return Tick(reading.log_ratio, reading.low, reading.high, failed=reading.failure is not None, nothing=nothing)


def _mean(variant: str, groups: Iterable[Group], metric: Metric) -> Mean:
    """The mean of a column. Where a count is zero there is none: then the number of such cases is told instead."""
    cells = [cell for group in groups for row in group.rows for cell in row.cells if cell.variant == variant]
    logs = [cell.log_ratio for cell in cells if cell.log_ratio is not None]
    nothing = sum(cell.log_ratio is None and cell.outcome == "less" for cell in cells)
    if nothing:
        cases = len(logs) + nothing
        return Mean(
            variant,
            f"0 in {nothing} of {cases}",
            f"none at all in {nothing} of {_count(cases)}",
            "better",
            5,
            cases,
            None,
        )
    if not logs:
        return Mean(variant, "" if variant == BASELINE else "–", "", "plain", 0, 0, None)
    mean = sum(logs) / len(logs)
    outcome = "same" if abs(mean) < 0.005 else "faster" if mean < 0 else "slower"
    words = factors.words(mean, metric=metric.name, outcome=outcome, baseline=BASELINE)
    return Mean(variant, factors.factor(mean), words, factors.tone(outcome), factors.depth(mean), len(logs), mean)


def _count(cases: int) -> str:
    return "1 case" if cases == 1 else f"{cases} cases"


@dataclass(frozen=True)
class _Change:
    """A line's newest change: where, how large (for sorting only), and in words."""

    place: int
    size: float
    line: Line
    outcome: str
    text: str
    note: str = ""


def _changes(line: Line, commits: tuple[Commit, ...]) -> Iterator[_Change]:
    """The changes of a line at the newest commits, each against the commit measured before it."""
    measured = [(place, reading) for place, reading in enumerate(line.readings) if reading is not None]
    for (_, before), (place, now) in pairwise(measured):
        if place < len(commits) - LATELY:
            continue
        if now.failure:
            if not before.failure and line.metric.name == "time":
                yield _Change(place, math.inf, line, "failed", f"fails since this commit: {now.failure}")
        elif before.failure:
            if line.metric.name == "time":
                yield _Change(place, math.inf, line, "same", "runs again since this commit")
        elif line.metric.exact:
            yield from _exact_change(place, before, now, line)
        elif line.metric.name == "time":
            yield from _moved_ratio(place, before, now, line)


def _exact_change(place: int, before: Reading, now: Reading, line: Line) -> Iterator[_Change]:
    if before.value is None or now.value is None or before.value == now.value:
        return
    outcome = "less" if now.value < before.value else "more"
    unit = line.metric.unit
    text = (
        f"{line.metric.label} {units.quantity(before.value, unit)} → {units.quantity(now.value, unit)} "
        f"({units.change(now.value - before.value, unit)})"
    )
    yield _Change(place, abs(math.log((now.value + 1) / (before.value + 1))), line, outcome, text)


def _moved_ratio(place: int, before: Reading, now: Reading, line: Line) -> Iterator[_Change]:
    moved = factors.move(before.spread, now.spread)
    if moved is None or before.log_ratio is None or now.log_ratio is None:
        return
    text = f"time against {BASELINE} moved {factors.factor(before.log_ratio)} → {factors.factor(now.log_ratio)}"
    note = "intervals apart, not yet confirmed by a paired comparison"
    yield _Change(place, abs(now.log_ratio - before.log_ratio), line, moved, text, note)
