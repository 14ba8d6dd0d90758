"""The content of the report page, from the outline of the report as it was stored. Keys that are missing are left out, never made up."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pullback_dashboards import links
from pullback_dashboards.history import Commit, baseline_in_words, in_reading_order, metric_label
from pullback_dashboards.wording import factors, units
from pullback_dashboards.wording.facts import Fact, leaves, raw, read
from pullback_dashboards.wording.plurals import counted
from pullback_service.exports.comma_separated import tame
from pullback_service.ratio import NO_RATIO, Ratio
from pullback_service.reports.comparisons import compared_in
from pullback_service.reports.ratios import (
    PairedRatio,
    UploadedMetric,
    baseline_of,
    ratio_in,
    stored_ratios,
    uploaded_metrics,
    uploaded_value,
)
from pullback_service.reports.report_outline import COUNTS
from pullback_service.reports.stored_files import numbered_if_failed
from pullback_service.series.case_identity import label

TABLE = (
    "case", "variant", "kind", "metric", "value", "unit", "factor", "low", "high", "groups", "outcome", "method", "failure",
)  # fmt: skip
_NO_NUMBERS = (None,) * 9
_PLAN_UNITS = {"bytes": "B", "state_bytes": "B", "peak_bytes": "B", "flops": "FLOP"}


@dataclass(frozen=True)
class Numbers(factors.RatioNumbers):
    """A metric as numbers: the median of its processes or the count, and the paired ratio where there is one."""

    value: float | None
    unit: str
    groups: int | None = None
    outcome: str | None = None


@dataclass(frozen=True)
class Amount:
    """A metric other than time of one variant."""

    metric: str
    value: str
    exact: str
    method: str | None
    numbers: Numbers

    @property
    def words(self) -> str:
        """The value without rounding, and how it was counted."""
        return f"{self.exact}, by {self.method}" if self.method else self.exact


@dataclass(frozen=True)
class VariantRow:
    """One variant of a case."""

    variant: str
    kind: str
    time: str
    factor: str
    doubt: str
    words: str
    sign: str
    tone: str
    samples: str
    amounts: tuple[Amount, ...]
    plan: tuple[Fact, ...]
    program_hash: str | None
    failure: str | None
    numbers: Numbers | None = None

    @property
    def by_metric(self) -> Mapping[str, Amount]:
        """The amounts by what they are of."""
        return {amount.metric: amount for amount in self.amounts}


@dataclass(frozen=True)
class CaseBlock:
    """One case of the report."""

    case: str
    workload: str
    href: str
    gradient: str
    failure: str | None
    metrics: tuple[str, ...]
    variants: tuple[VariantRow, ...]
    baseline: str

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """Metrics with what pages call them."""
        return [(metric, metric_label(metric)) for metric in self.metrics]

    @property
    def compares(self) -> bool:
        """True if any variant has a ratio to the baseline in its time."""
        return any(row.factor for row in self.variants)


@dataclass(frozen=True)
class ComparisonRow:
    """Two commits measured against each other."""

    case: str
    variant: str
    metric: str
    reference: Commit
    candidate: Commit
    factor: str
    doubt: str
    sign: str
    tone: str
    outcome: str


@dataclass(frozen=True)
class FailureRow:
    """A case, or one variant of it, that gave no numbers; `page` is that of the report on which it stands."""

    number: int
    page: int
    case: str
    variant: str | None
    reason: str


@dataclass(frozen=True)
class ReportView:
    """A page of a report: what is said of the whole, and some of its cases, the first of which is number `first`."""

    id: str
    project: str
    commit: Commit
    machine: str
    suite: str | None
    busy: str | None
    dirty: bool
    late: bool
    started_at: datetime
    duration_s: float | None
    facts: tuple[Fact, ...]
    harness: tuple[Fact, ...]
    cases: tuple[CaseBlock, ...]
    left_out: tuple[str, ...]
    comparisons: tuple[ComparisonRow, ...]
    reproduce: str
    job_href: str | None
    failures: tuple[FailureRow, ...]
    format: str
    first: int
    page: int
    pages: int
    all_cases: int
    all_failures: int
    all_comparisons: int
    dropped: str | None = None
    """Said where the file is gone and only the rows made of it are left."""

    @property
    def compares(self) -> bool:
        """True if anything in it has a ratio to the baseline."""
        return any(block.compares for block in self.cases)

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """The metrics of all cases, so that their tables have the same columns."""
        return tuple(dict.fromkeys(column for block in self.cases for column in block.columns))

    @property
    def baseline(self) -> str:
        """The variant that ratios are against, in words."""
        return baseline_in_words(block.baseline for block in self.cases)


def failures_of(entries: Sequence[Mapping[str, Any]], *, cases_of_a_page: int) -> Iterator[FailureRow]:
    """Every failure of a report in a sentence, with the number of its case and the page it is on."""
    for number, entry in numbered_if_failed(entries):
        reasons: list[tuple[str | None, str]] = []
        if (failure := _failure(entry.get("error"), gradient_of(entry))) is not None:
            reasons.append((None, failure))
        failed = {v["variant"]: v["error"] for v in entry.get("variants", []) if v.get("error")}
        reasons += [(name, _words_of(failed[name])) for name in in_reading_order(failed)]
        for variant, reason in reasons:
            yield FailureRow(number, (number - 1) // cases_of_a_page + 1, label_of(entry["case"]), variant, reason)


def label_of(case: Mapping[str, Any]) -> str:
    """The name of a case as a report tells of it."""
    return label(case["workload"], case.get("params", {}), case.get("dtype"), case.get("device"))


def case_blocks(entries: Iterable[Mapping[str, Any]], *, project: str) -> Iterator[CaseBlock]:
    """Some cases of a report."""
    for entry in entries:
        name = label_of(entry["case"])
        workload = entry["case"]["workload"]
        error = entry.get("error")
        gradient = gradient_of(entry)
        ratios = stored_ratios(entry)
        baseline = baseline_of(entry)
        variants = {v["variant"]: v for v in entry.get("variants", [])}
        yield CaseBlock(
            case=name,
            workload=workload,
            href=links.workload(project, workload, case=name),
            gradient=_gradient(gradient),
            failure=_failure(error, gradient),
            metrics=tuple(
                dict.fromkeys(
                    m
                    for v in variants.values()
                    for m, told in v.get("metrics", {}).items()
                    if m != "time" and value_of(told) is not None
                )
            ),
            variants=tuple(
                _variant(
                    variants[name], {metric: ratios[of, metric].paired for of, metric in ratios if of == name}, baseline
                )
                for name in in_reading_order(variants)
            ),
            baseline=baseline,
        )


def table_of(entries: Iterable[Mapping[str, Any]]) -> Iterator[Sequence[object]]:
    """One row of `TABLE` for each metric of each variant of each case; a failure is a row without a number."""
    for entry in entries:
        case = tame(label_of(entry["case"]))
        ratios = stored_ratios(entry)
        variants = {v["variant"]: v for v in entry.get("variants", [])}
        for name in in_reading_order(variants):
            variant = variants[name]
            about = case, tame(name), tame(variant.get("kind", "external"))
            if variant.get("error"):
                yield *about, *_NO_NUMBERS, tame(_words_of(variant["error"]))
                continue
            metrics = variant.get("metrics", {})
            for metric in sorted(metrics, key=lambda each: each != "time"):  # the time first
                told = metrics[metric]
                value, is_time = value_of(told), metric == "time"
                if value is None and is_time:
                    continue
                unit, method = told.get("unit", "s" if is_time else ""), None if is_time else told.get("method")
                paired = ratios[name, metric].paired if (name, metric) in ratios else None
                ratio, outcome = (NO_RATIO, None) if paired is None else (paired.ratio, paired.outcome)
                factor = factors.columns_of(ratio).values()
                yield *about, tame(metric), value, tame(unit), *factor, ratio.n, outcome, method and tame(method), None
        failure = _failure(entry.get("error"), gradient_of(entry))
        if failure and not variants:
            yield case, None, None, *_NO_NUMBERS, tame(failure)


def facts_of(mapping: Mapping[str, Any]) -> tuple[Fact, ...]:
    """A mapping as flat names and texts, in its own order; what is unknown is left out."""
    return tuple(
        Fact(" ".join(path).replace("_", " "), text, read(path, value))
        for path, value in leaves(mapping)
        if (text := raw(value))
    )


def left_out(document: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence for everything that was asked for, or belongs to the suite, and was not measured."""
    harness = document.get("harness", {})
    lists = (harness.get(name) for name in ("refused", "absent"))
    return tuple(str(sentence) for sentences in lists if isinstance(sentences, list) for sentence in sentences)


def bigger_is_better(metric: Mapping[str, Any]) -> bool:
    """The better direction of a metric, as a report tells it."""
    return metric.get("direction") == "bigger"


def value_of(metric: Mapping[str, Any]) -> float | None:
    """The value of a metric: of its commit's reading, or what a report states, the median of its processes or one count."""
    pooled: float | None = metric.get("pooled")
    return pooled if pooled is not None else uploaded_value(metric.get("processes"), metric.get("value"))


def metrics_of(document: Mapping[str, Any]) -> Mapping[str, UploadedMetric]:
    """The metrics of a report: its comparisons only name theirs."""
    return {metric.name: metric for entry in document.get("cases", []) for _, metric in uploaded_metrics(entry)}


def comparison_row(
    label: str,
    raw: Mapping[str, Any],
    reference: Commit,
    candidate: Commit,
    metrics: Mapping[str, UploadedMetric],
    *,
    quality: str = "clean",
    dirty: bool = False,
) -> ComparisonRow:
    """One comparison in words; `metrics` are those of the report."""
    compared = compared_in(raw, metrics, quality=quality, dirty=dirty)
    outcome, is_bigger = compared.judgement.outcome, compared.bigger_is_better
    return ComparisonRow(
        case=label,
        variant=raw["variant"],
        metric=raw["metric"],
        reference=reference,
        candidate=candidate,
        factor=factors.shown(ratio_in(raw)) or "–",
        doubt=factors.bounds(ratio_in(raw)),
        sign=factors.mark(outcome, bigger_is_better=is_bigger),
        tone=factors.tone(outcome, bigger_is_better=is_bigger),
        outcome=outcome,
    )


def _variant(variant: Mapping[str, Any], paired: Mapping[str, PairedRatio | None], baseline: str) -> VariantRow:
    metrics = variant.get("metrics", {})
    time = metrics.get("time", {})
    processes = time.get("processes") or []
    of_time = paired.get("time")
    numbers = _numbers(time, of_time, unit=time.get("unit", "s"))
    ratio, outcome = NO_RATIO if of_time is None else of_time.ratio, numbers.outcome
    error = variant.get("error")
    return VariantRow(
        variant=variant["variant"],
        kind=variant.get("kind", "external"),
        time=units.quantity(numbers.value, numbers.unit),
        factor=factors.shown(ratio),
        doubt=factors.bounds(ratio),
        words=_words(ratio, outcome, baseline),
        sign=factors.mark(outcome, bigger_is_better=bigger_is_better(time)),
        tone=factors.tone(outcome, bigger_is_better=bigger_is_better(time)),
        samples=samples_in_words(
            processes, time.get(COUNTS), counted(numbers.groups, "group") if numbers.groups else ""
        ),
        amounts=tuple(_amount(name, metric, paired.get(name)) for name, metric in metrics.items() if name != "time"),
        plan=_plan(variant.get("plan") or {}),
        program_hash=variant.get("program_hash"),
        failure=_words_of(error) if error else None,
        numbers=numbers,
    )


def _words(ratio: Ratio, outcome: str | None, baseline: str) -> str:
    if ratio.log_ratio is None:
        return ""
    return factors.words(ratio.log_ratio, metric="time", outcome=outcome, baseline=baseline)


def _amount(name: str, metric: Mapping[str, Any], paired: PairedRatio | None) -> Amount:
    numbers = _numbers(metric, paired, unit=metric.get("unit", ""))
    text, exact = (write(numbers.value, numbers.unit) for write in (units.quantity, units.exact))
    return Amount(name, text, exact, metric.get("method"), numbers)


def _numbers(metric: Mapping[str, Any], paired: PairedRatio | None, *, unit: str) -> Numbers:
    if paired is None:
        return Numbers(value_of(metric), unit)
    ratio = paired.ratio
    return Numbers(value_of(metric), unit, ratio.n, paired.outcome, **factors.numbers_of(ratio))


def samples_in_words(processes: Sequence[float], slices: Sequence[int] | None, more: str = "") -> str:
    """The number of samples behind a time: 20 processes x 100 slices; and what else is to be said of them."""
    if not processes:
        return ""
    text = counted(len(processes), "process", "processes")
    if slices:
        fewest, most = min(slices), max(slices)
        text += f" × {fewest if fewest == most else f'{fewest}–{most}'} slices"
    return f"{text}, {more}" if more else text


def plan_counts(plan: Mapping[str, Any]) -> dict[str, str]:
    """The counts of a plan, as text with their units; its listing and its hash stand elsewhere."""
    counts = {}
    for name, value in plan.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            counts[name] = units.quantity(value, _PLAN_UNITS.get(name, "count"))
        elif isinstance(value, list) and name != "listing":
            counts[name] = ", ".join(str(item) for item in value) or "none"
    return counts


def _plan(plan: Mapping[str, Any]) -> tuple[Fact, ...]:
    """The plan's summary."""
    counts = plan_counts(plan)
    told = ((name, counts.get(name) or _as_text(value)) for name, value in plan.items() if name != "listing")
    return tuple(Fact(name.replace("_", " "), text) for name, text in told if text)


def _as_text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def gradient_of(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The check of an entry's gradient; empty where every variant failed, of which each says why."""
    variants = entry.get("variants")
    return {} if variants and all(variant.get("error") for variant in variants) else entry.get("gradient")


def gradient_in_words(gradient: Mapping[str, Any] | None) -> str:
    """The result of checking it; empty where nothing is left to check."""
    if not gradient:
        return "not checked" if gradient is None else ""
    error = gradient.get("max_rel_error")
    size = "" if error is None else f", relative error {error:.1e}"
    return f"{'right' if gradient.get('ok') else 'wrong'}{size}"


def _gradient(gradient: Mapping[str, Any] | None) -> str:
    against = f" against the {gradient['oracle']}" if gradient and gradient.get("oracle") else ""
    return f"{gradient_in_words(gradient)}{against}"


def _words_of(error: Mapping[str, Any]) -> str:
    return f"{error['kind']}: {error['message']}"


def _failure(error: Mapping[str, Any] | None, gradient: Mapping[str, Any] | None) -> str | None:
    if error:
        return _words_of(error)
    if gradient and not gradient.get("ok"):
        return f"the gradient is {_gradient(gradient)}"
    return None
