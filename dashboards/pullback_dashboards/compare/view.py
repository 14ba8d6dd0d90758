"""The content of the compare page: a verdict in words, the change of every metric, and the series that matter, worst first.

Everything said here was judged by the service (`comparisons/judging.py`); this file finds the words. What nobody measured
in the same groups is never called better or worse, but likely so at most.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pullback_dashboards import links
from pullback_dashboards.choices import Question
from pullback_dashboards.compare.row_details import ExpandedRow
from pullback_dashboards.explore.view import Menu, written
from pullback_dashboards.history import Commit, metric_label
from pullback_dashboards.incident_marks import IncidentMark
from pullback_dashboards.overview.view import bracket
from pullback_dashboards.rerun_commands import EXTERNAL
from pullback_dashboards.wording import factors, units
from pullback_dashboards.wording.markdown import markdown_text
from pullback_dashboards.wording.plurals import counted
from pullback_service.comparisons.dimension_counts import DimensionCounts
from pullback_service.comparisons.judgements import MetricSummary, Outcomes, Span
from pullback_service.comparisons.judging import UNCHANGED, UNPAIRED, Evidence, Outcome, Trend
from pullback_service.comparisons.queries import SeriesDetail, SideDetail
from pullback_service.comparisons.vectorized_judging import OUTCOMES, UNPAIRED_CODES, Flags
from pullback_service.incidents.commands import compare_command
from pullback_service.ratio import Ratio, value_before
from pullback_service.series.queries import MachineFacts
from pullback_service.uploaded_claims import COUNTED_IN_ONE_SESSION

RELEVANT: tuple[Outcome, ...] = ("failed", "slower", "more", "likely_slower", "likely_faster", "faster", "less")
Show = Literal["changed", "worse", "better", "likely", "ambiguous", "unchanged", "not_comparable", "failed", "all"]
SHOWN: Mapping[Show, str] = {
    "changed": "changes",
    "worse": "▲ worse",
    "better": "▼ better",
    "likely": "△▽ likely",
    "ambiguous": "? ambiguous",
    "unchanged": "= unchanged",
    "not_comparable": "not comparable",
    "failed": "✕ failed",
    "all": "all",
}
_DIMENSIONS = ("workload", "variant", "metric", "machine", "kind", "device", "dtype")
_CLAUSES = 3  # of a verdict
_NEVER_BELOW_ZERO = ("_bytes", "_allocs")  # how metrics of memory end
_EVIDENCE: Mapping[Evidence | None, str] = {
    "paired": "in the same groups",
    "exact": "counted",
    "ratios": "by ratios at different times",
    "values": "by values at different times",
    None: "",
}
_UNPAIRED = frozenset(words for evidence, words in _EVIDENCE.items() if evidence in UNPAIRED)


@dataclass(frozen=True)
class Row(factors.RatioNumbers):
    """One series at both commits. `detail` is there where the row is open."""

    workload: str
    case: str
    label: str
    variant: str
    metric: str
    machine: str
    mark: str
    tone: str
    outcome: str
    reference: str
    candidate: str
    change: str
    doubt: str
    threshold: str
    significance: str
    kind: str
    reason: str
    groups: int | None
    reference_value: float | None
    candidate_value: float | None
    threshold_value: float | None
    significance_value: float | None
    unit: str
    processes: str
    history_href: str
    case_href: str
    anchor: str
    open_href: str | None
    detail: ExpandedRow | None = None

    @property
    def told(self) -> str:
        """The outcome in words; programs get the word of the API."""
        return self.outcome.replace("_", " ")


@dataclass(slots=True)
class Dimension:
    """The values of a dimension with the number of their series, and how many more values there are, of fewer series each."""

    counts: Counter[str] = field(default_factory=Counter)
    unlisted: int = 0


@dataclass(frozen=True)
class Metric:
    """The change of one metric over all series."""

    metric: str
    label: str
    worse: str
    worse_range: str
    better: str
    better_range: str
    likely_worse: int
    likely_better: int
    unchanged: int
    ambiguous: int
    not_comparable: int
    failed: int

    @property
    def is_quiet(self) -> bool:
        """True if all of its series are unchanged."""
        others = self.likely_worse + self.likely_better + self.ambiguous + self.not_comparable + self.failed
        return self.worse == self.better == "0" and not others


@dataclass(frozen=True)
class Verdict:
    """The first thing to read: one sentence, the sentence after it with the command it ends in, and the tone of all."""

    tone: str
    mark: str
    text: str
    then: str = ""
    command: str = ""


@dataclass(frozen=True)
class CompareView:
    """Two commits, series by series."""

    project: str
    reference: Commit
    candidate: Commit
    machines: tuple[str, str] | None
    verdict: Verdict
    notes: tuple[str, ...]
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    found: int
    hidden: int
    all_href: str
    relevant_href: str
    showing: Show
    first: int
    next_href: str | None
    turned_href: str
    commands: str | None
    """The command that measures both in the same groups; None if Pullback measured neither."""
    questions: tuple[Question, ...] = ()
    menus: tuple[Menu, ...] = ()
    pin_href: str | None = None
    incidents: tuple[IncidentMark, ...] = ()
    """Incidents that begin after the reference, up to the candidate."""

    @property
    def moved_metrics(self) -> tuple[Metric, ...]:
        """Metrics of which something is to be told."""
        return tuple(metric for metric in self.metrics if not metric.is_quiet)

    @property
    def quiet_metrics(self) -> str:
        """The others, with how many series each has."""
        return ", ".join(f"{metric.label} ({metric.unchanged})" for metric in self.metrics if metric.is_quiet)

    @property
    def more_runs_tell_more(self) -> bool:
        """True if there is a change without an interval that more runs would give it."""
        return any(
            row.kind in _UNPAIRED and not row.doubt and row.metric not in COUNTED_IN_ONE_SESSION for row in self.rows
        )

    @property
    def narrowed(self) -> bool:
        """True if a choice leaves out any series."""
        return any(menu.narrows for menu in self.menus)


def shown_by(outcomes: Outcomes, show: Show) -> Flags:
    """The series of each kind of row."""
    match show:
        case "all":
            return np.ones(len(outcomes), bool)
        case "changed":
            return outcomes.having(*RELEVANT)
        case "worse" | "better":
            return outcomes.trending(show) & ~outcomes.having("failed")
        case "likely":
            return outcomes.having("likely_slower", "likely_faster")
        case "unchanged":
            return outcomes.having(*UNCHANGED)
        case _:
            return outcomes.having(show)


def dimensions_of(
    outcomes: Outcomes, of_cases: Mapping[str, DimensionCounts], machines: Mapping[int, MachineFacts]
) -> Mapping[str, Dimension]:
    """Every dimension of the compared series, by the names that addresses use."""
    result = {name: Dimension() for name in _DIMENSIONS}
    for name, counted_values in of_cases.items():
        dimension = result.setdefault(name, Dimension())
        for value, count in counted_values.listed:
            dimension.counts[written(value)] += count
        dimension.unlisted = counted_values.values - len(counted_values.listed)
    for place, count in _counted(outcomes.shape):
        shape = outcomes.shapes[place]
        result["variant"].counts[shape.variant] += count
        result["metric"].counts[shape.metric] += count
        if shape.kind is not None:
            result["kind"].counts[shape.kind] += count
    for machine_id, count in _counted(outcomes.machine_id):
        result["machine"].counts[machines[machine_id].name] += count
    return result


def _counted(column: NDArray[Any]) -> Iterator[tuple[int, int]]:
    values, counts = np.unique(column, return_counts=True)
    return zip(values.tolist(), counts.tolist(), strict=True)


def verdict(outcomes: Outcomes, reference: Commit, candidate: Commit, *, across: bool = False) -> Verdict:
    """The whole comparison in a sentence; `across` two machines there is nothing that groups could tell."""
    counts = outcomes.counts()
    failed, ambiguous = counts.get("failed", 0), counts.get("ambiguous", 0)
    likely, likely_better = counts.get("likely_slower", 0), counts.get("likely_faster", 0)
    worse, better = int(outcomes.trending("worse").sum()) - failed, int(outcomes.trending("better").sum())
    unpaired = int(np.isin(outcomes.evidence, UNPAIRED_CODES).sum())
    command = compare_command(reference.short, candidate.short) if is_measured_here(outcomes) else None
    then = _remedy(unpaired, ambiguous, command, across=across)
    if not len(outcomes):
        return Verdict("plain", "", "Neither commit has results.", "Choose other commits or filters.")
    if failed or worse:
        parts = [counted(worse, "series is worse", "series are worse")] if worse else []
        parts += [counted(failed, "series fails", "series fail")] if failed else []
        parts += [f"{likely} likely worse"] if likely else []
        parts += [counted(better, "is better", "are better")] if better else []
        return Verdict("worse", "▲", f"{_joined(parts)}: {_joined(_worst(outcomes))}.", *then)
    if better:
        words = counted(better, "series is better", "series are better")
        # Of what is ambiguous nobody knows that it is not worse.
        apart = [f"{likely} likely worse"] if likely else []
        apart += [f"{ambiguous} ambiguous"] if ambiguous else []
        text = f"{words}; {_joined(apart)}." if apart else f"Nothing is worse; {words}."
        return Verdict("better", "▼", text, *then)
    if likely or likely_better:
        parts = [f"{counted(likely, 'series is', 'series are')} likely worse"] if likely else []
        if likely_better:
            number = f"{likely_better}" if likely else counted(likely_better, "series is", "series are")
            parts.append(f"{number} likely better")
        tone, sign = ("likely-worse", "△") if likely else ("likely-better", "▽")
        worst = f": {_joined(_worst(outcomes, 'likely_worse'))}" if likely else ""
        return Verdict(tone, sign, f"{_joined(parts)}{worst}.", *then)
    unchanged = counts.get("same", 0) + counts.get("equal", 0)
    return _unmoved(len(outcomes), unchanged, ambiguous, then, unpaired=unpaired)


def _unmoved(number: int, unchanged: int, ambiguous: int, then: tuple[str, str], *, unpaired: int) -> Verdict:
    """A sentence where nothing is better or worse: of how many series that can be said."""
    if ambiguous == number:
        return Verdict("unsure", "?", "Inconclusive: all series are ambiguous.", *then)
    if unchanged == number:
        return Verdict("plain", "=", "No change.", *then)
    apart = number - unchanged - ambiguous
    rest = _joined(
        [f"{count} {what}" for count, what in ((ambiguous, "ambiguous"), (apart, "not comparable")) if count]
    )
    then = then if unpaired else ("", "")
    if not unchanged:
        return Verdict("unsure", "?", f"Inconclusive: {rest}.", *then)
    return Verdict("plain", "=", f"No change in {counted(unchanged, 'series', 'series')}; {rest}.", *then)


def metric_rows(summaries: Iterable[MetricSummary]) -> tuple[Metric, ...]:
    """The rows of metrics, with the change of each."""
    return tuple(
        Metric(
            metric=summary.metric,
            label=metric_label(summary.metric),
            worse=_spanned(summary.worse),
            worse_range=_range(summary.worse),
            better=_spanned(summary.better),
            better_range=_range(summary.better),
            likely_worse=summary.outcomes.get("likely_slower", 0),
            likely_better=summary.outcomes.get("likely_faster", 0),
            unchanged=summary.outcomes.get("same", 0) + summary.outcomes.get("equal", 0),
            ambiguous=summary.outcomes.get("ambiguous", 0),
            not_comparable=summary.outcomes.get("not_comparable", 0),
            failed=summary.outcomes.get("failed", 0),
        )
        for summary in summaries
    )


def rows_of(
    details: Sequence[SeriesDetail],
    *,
    project: str,
    candidate: Commit,
    opened: tuple[int, ExpandedRow | None] | None = None,
    opening: str | None = None,
    closing: str = "",
) -> tuple[Row, ...]:
    """The table. `opened` is the series whose details are shown.

    `opening` is the address of the page with another one open, up to its number, and `closing` that with none.
    """

    @cache  # the rows of a page are of few cases
    def hrefs(workload: str, label: str, machine: str) -> tuple[str, str]:
        history = links.workload(project, workload, case=label, machine=machine)
        return history, links.case(project, candidate.sha, label, machine=machine)

    rows = []
    for each in details:
        series_id = each.compared.series_id
        is_open = opened is not None and opened[0] == series_id
        address = None
        if opening is not None and series_id is not None:
            address = f"{closing if is_open else f'{opening}{series_id}'}#{_anchor(series_id)}"
        detail = opened[1] if is_open and opened is not None else None
        rows.append(_row(each, *hrefs(each.case.workload, each.case.label, each.machine.name), address, detail))
    return tuple(rows)


def _anchor(series_id: int | None) -> str:
    return f"series-{series_id}"


def _row(
    compared_series: SeriesDetail, history_href: str, case_href: str, open_href: str | None, detail: ExpandedRow | None
) -> Row:
    compared, judgement = compared_series.compared, compared_series.compared.judgement
    _, _, variant, metric = compared.key
    unit = compared.unit or ("s" if metric == "time" else "1")
    ratio, threshold = judgement.ratio, judgement.threshold
    significance = _significance(ratio.log_ratio, threshold)
    older = None if compared.reference is None else compared.reference.value
    newer = None if compared.candidate is None else compared.candidate.value
    if judgement.evidence == "paired" and not compared.exact and older is not None and newer is not None:
        older = value_before(newer, ratio.log_ratio, older)
    return Row(
        workload=compared_series.case.workload,
        case=compared_series.case.label,
        label=bracket(compared_series.case.label, compared_series.case.workload),
        variant=variant,
        metric=metric,
        machine=compared_series.machine.name,
        mark=factors.mark(judgement.outcome, bigger_is_better=compared.bigger_is_better),
        tone=factors.tone(judgement.outcome, bigger_is_better=compared.bigger_is_better),
        outcome=judgement.outcome,
        reference=units.quantity(older, unit),
        candidate=units.quantity(newer, unit),
        change=_change(ratio.log_ratio, older, newer, unit, exact=compared.exact),
        doubt=_doubt(ratio),
        threshold="" if threshold is None else factors.doubt(-threshold, threshold),
        significance="" if significance is None else f"{significance:.1f}×",
        kind=_EVIDENCE[judgement.evidence],
        reason=judgement.reason or "",
        groups=ratio.n,
        reference_value=older,
        candidate_value=newer,
        threshold_value=threshold,
        significance_value=significance,
        unit=unit,
        processes=" and ".join(filter(None, map(_processes, (compared_series.reference, compared_series.candidate)))),
        history_href=history_href,
        case_href=case_href,
        anchor=_anchor(compared.series_id),
        open_href=open_href,
        detail=detail,
        **factors.numbers_of(ratio),
    )


def _doubt(ratio: Ratio) -> str:
    _, low, high, _ = ratio
    return "" if low is None or high is None or low == high else _span_of_change(low, high)


def _processes(side: SideDetail | None) -> str:
    processes = None if side is None else side.reading.process_count
    return "" if processes is None else counted(processes, "process", "processes")


def _change(log_ratio: float | None, older: float | None, newer: float | None, unit: str, *, exact: bool) -> str:
    if exact and older is not None and newer is not None:
        difference = units.change(newer - older, unit)
        return difference if log_ratio is None or not log_ratio else f"{factors.shift(log_ratio)}, {difference}"
    return "–" if log_ratio is None else factors.shift(log_ratio)


def _span_of_change(low: float, high: float) -> str:
    return f"{factors.shift(low)} to {factors.shift(high)}"


def _significance(log_ratio: float | None, threshold: float | None) -> float | None:
    """The change in multiples of the least that could have been claimed."""
    return None if log_ratio is None or not threshold else abs(log_ratio) / threshold


def _spanned(span: Span) -> str:
    if not span.count:
        return "0"
    return f"{span.count}" if span.mean is None else f"{span.count}, mean {factors.shift(span.mean)}"


def _range(span: Span) -> str:
    if span.smallest is None or span.largest is None or span.count < 2:
        return ""
    ends = dict.fromkeys((factors.shift(span.smallest), factors.shift(span.largest)))
    return " to ".join(ends) if len(ends) > 1 else ""


def _worst(outcomes: Outcomes, which: Trend = "worse") -> Iterator[str]:
    """The worst in words, alike ones together: "fused array bytes up to +100 % in 5 series"."""
    worse = outcomes[outcomes.trending(which)]
    together: dict[tuple[str, str, Outcome], list[int]] = {}
    for place, (shape, outcome) in enumerate(zip(worse.shape.tolist(), worse.outcome.tolist(), strict=True)):
        named = worse.shapes[shape]
        together.setdefault((named.variant, named.metric, OUTCOMES[outcome]), []).append(place)
    for (variant, metric, outcome), places in list(together.items())[:_CLAUSES]:
        where = "" if len(places) == 1 else f" in {len(places)} series"
        ratios = np.abs(worse.log_ratio[places])
        signed = None if np.isnan(ratios).all() else float(np.nanmax(ratios))
        if outcome == "failed":
            yield f"{variant} fails{where}"
        elif signed is None:
            yield f"{variant} {_without_ratio(metric, outcome)}{where}"
        else:
            upto = "" if len(places) == 1 else "up to "
            signed = -signed if worse.bigger_is_better[places[0]] else signed
            yield f"{variant} {metric_label(metric)} {upto}{factors.shift(signed)}{where}"
    if len(together) > _CLAUSES:
        yield f"and {len(together) - _CLAUSES} more"


def _without_ratio(metric: str, outcome: Outcome) -> str:
    """The change of a count that has no ratio: what got less is zero or less now, what got more was that before."""
    label = metric_label(metric)
    if metric.endswith(_NEVER_BELOW_ZERO):
        return f"no longer has {label}" if outcome == "less" else f"has {label}, had none"
    return f"{label} fell to zero or less" if outcome == "less" else f"{label} rose from zero or less"


def is_measured_here(outcomes: Outcomes) -> bool:
    """True if Pullback measured anything of it: what another tool measured, only that can measure again."""
    return any(outcomes.shapes[place].kind != EXTERNAL for place, _ in _counted(outcomes.shape))


def _remedy(unpaired: int, ambiguous: int, command: str | None, *, across: bool) -> tuple[str, str]:
    """The remedy for what cannot be said: a sentence, and the command it ends in, where there is one."""
    if unpaired and across:
        return (
            f"Times of {counted(unpaired, 'series', 'series')} are from two machines; only counts are comparable.",
            "",
        )
    if unpaired:
        words = counted(unpaired, "series was", "series were")
        apart = f"{words} measured at different times, so their changes are at most likely."
        return (apart, "") if command is None else (f"{apart} To measure two commits in the same groups, run", command)
    return (f"{counted(ambiguous, 'series is', 'series are')} ambiguous." if ambiguous else ""), ""


def _joined(parts: "Sequence[str] | Iterator[str]") -> str:
    return ", ".join(parts)


def markdown(view: CompareView) -> str:
    """Exactly what the page shows, for a pull request."""
    command = f" `{view.verdict.command}`" if view.verdict.command else ""
    lines = [
        f"**{markdown_text(view.verdict.mark)} {markdown_text(view.verdict.text)}**".replace("** ", "**"),
        "",
        f"`{view.reference.short}` → `{view.candidate.short}` of {markdown_text(view.project)}. {markdown_text(view.verdict.then)}{command}".rstrip(),
        "",
        "| metric | worse | better | likely worse | likely better | unchanged | ambiguous | not comparable | failed |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {markdown_text(m.label)} | {m.worse} | {m.better} | {m.likely_worse} | {m.likely_better} | {m.unchanged} | {m.ambiguous} | {m.not_comparable} | {m.failed} |"
        for m in view.metrics
    ]
    if view.rows:
        lines += [
            "",
            "| | case | variant | metric | machine | before | after | change | interval | significance | threshold |",
            "|---|---|---|---|---|---:|---:|---:|---|---:|---|",
        ]
        lines += [
            f"| {row.mark} | {markdown_text(row.case)} | {markdown_text(row.variant)} | {markdown_text(metric_label(row.metric))} | {markdown_text(row.machine)} "
            f"| {row.reference} | {row.candidate} | {row.change} | {row.doubt or row.kind} | {row.significance} | {row.threshold} |"
            for row in view.rows
        ]
    if view.hidden:
        why = "unchanged or inconclusive" if view.showing == "changed" else "of other kinds"
        lines += ["", f"{view.hidden} series ({why}) are not shown."]
    if len(view.rows) < view.found:
        lines += ["", f"Rows {view.first} to {view.first + len(view.rows) - 1} of {view.found}."]
    return "\n".join(lines) + "\n"


def columns_of(row: Row) -> Mapping[str, object]:
    """The row as numbers, for a table of them."""
    return {
        "case": row.case,
        "variant": row.variant,
        "metric": row.metric,
        "machine": row.machine,
        "outcome": row.outcome,
        "kind": row.kind,
        "reference": row.reference_value,
        "candidate": row.candidate_value,
        "unit": row.unit,
        **factors.columns_of(row),
        "groups": row.groups,
        "threshold": row.threshold_value,
        "significance": row.significance_value,
        "reason": row.reason,
    }
