"""The content of the page of a case at a commit: the case in a report, and what changed since the commit that it followed.

What changed is judged by the service, from all reports of both commits. Counts accuse at once, for they are exact, unless
their judgement doubts them; times are two readings side by side, pointed at only where the intervals of their ratios lie
apart and nothing else used the machine.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pullback_dashboards import links
from pullback_dashboards.case.differences import Difference, Line, differing_facts, program_lines
from pullback_dashboards.case.irregularities import IrregularityLine
from pullback_dashboards.case.provenance import MeasuredFact, measured_facts
from pullback_dashboards.charts.strip import Groups
from pullback_dashboards.history import Claim, Commit, doubt_of_count, in_reading_order, metric_label
from pullback_dashboards.incident_marks import IncidentMark
from pullback_dashboards.report.view import (
    bigger_is_better,
    gradient_in_words,
    gradient_of,
    plan_counts,
    samples_in_words,
    value_of,
)
from pullback_dashboards.rerun_commands import reproduce_command
from pullback_dashboards.wording import factors, units
from pullback_dashboards.wording.busyness import busy_words
from pullback_service.comparisons.judging import UNPAIRED
from pullback_service.comparisons.queries import SeriesComparison
from pullback_service.incidents.irregularities import MOST_SERIES, NEWEST
from pullback_service.measured_code.code_identity import EQUAL_CODE
from pullback_service.quality import CLEAN, quality_of
from pullback_service.ratio import NO_RATIO, BoundedLogRatio, Ratio, value_before
from pullback_service.reports.ratios import NOTHING_STORED, PairedRatio, baseline_of, stored_ratios
from pullback_service.uploaded_claims import BASELINE, COUNTED_IN_ONE_SESSION

LAYERS = (
    ("arrays", "array_allocs", "array_bytes", "peak_bytes"),
    ("Python", "python_allocs", "python_bytes", "python_peak_bytes"),
    ("malloc", "native_allocs", "native_bytes", "native_peak_bytes"),
    ("GPU", "gpu_allocs", "gpu_bytes", "gpu_peak_bytes"),
)
_GRAVITY = ("failed", "worse", "likely-worse", "unsure", "better", "likely-better", "plain")


@dataclass(frozen=True)
class Amount:
    """A count of memory beside what it was; `change` is empty where nothing changed or nothing is known of before.

    `tone` is unsure where nobody knows whether the commit did it, and `reason` says why.
    """

    metric: str
    value: float | None
    shown: str
    exact: str
    change: str
    tone: str
    differs: bool
    reason: str = ""


@dataclass(frozen=True)
class Layer:
    """One layer of memory. `amounts`: how often it was asked, for how many bytes, and the highest of what lived at once."""

    name: str
    method: str | None
    amounts: tuple[Amount, ...]


@dataclass(frozen=True)
class PlanChange:
    """The compiled program beside the one before."""

    hash: str | None
    hash_before: str | None
    counts: tuple[Difference, ...]
    lines: tuple[Line, ...]
    listing: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """True if it is another program; unknown hashes tell nothing."""
        return None not in {self.hash, self.hash_before} and self.hash != self.hash_before


@dataclass(frozen=True)
class VariantBlock:
    """One variant of the case."""

    variant: str
    kind: str
    failure: str | None
    time: str
    time_before: str
    factor: str
    doubt: str
    words: str
    sign: str
    tone: str
    since: str
    since_tone: str
    samples: tuple[float, ...]
    slices: str
    groups: Groups
    groups_before: Groups | None
    layers: tuple[Layer, ...]
    others: tuple[Amount, ...]
    """Neither time nor memory. What is measured, not counted, has the change that is likely: values of different moments drift."""
    plan: PlanChange | None
    resolution: float | None = None
    """The smallest step of its time that would be noticed within three commits, as natural log."""

    @property
    def noticed(self) -> str:
        """The same in percent; empty while it is not known."""
        return "" if self.resolution is None else factors.step(self.resolution)

    @property
    def amounts(self) -> tuple[Amount, ...]:
        """All but time."""
        return (*(amount for layer in self.layers for amount in layer.amounts), *self.others)


@dataclass(frozen=True)
class Sentence:
    """The change of one variant since the commit before, or the result of measuring both together."""

    variant: str
    tone: str
    mark: str
    text: str

    @property
    def outcome(self) -> str:
        """The word for its tone."""
        return {"unsure": "ambiguous", "plain": "same"}.get(self.tone, self.tone)


@dataclass(frozen=True)
class Step:
    """A neighbour in history."""

    commit: Commit
    href: str


@dataclass(frozen=True)
class CaseView:
    """A case at a commit."""

    project: str
    workload: str
    case: str
    workload_href: str
    commit: Commit
    machine: str
    report_href: str
    before: Step | None
    after: Step | None
    failure: str | None
    gradient: str
    sentences: tuple[Sentence, ...]
    moved: bool
    """True if anything is another than at the commit before, whatever was found by measuring both together."""
    comparable: bool
    """True if anything of it was measured at the commit before as well."""
    before_is_told: bool
    """True if the file of the commit before can still be read, which tells of its machine and its programs."""
    reasons: tuple[str, ...]
    """The reason to doubt that the commit caused the difference."""
    variants: tuple[VariantBlock, ...]
    measured: tuple[MeasuredFact, ...]
    equal_code: bool
    """True if the commit changed none of the files that are measured."""
    environment: tuple[Difference, ...]
    busy: str | None
    reproduce: str
    baseline: str
    incidents: tuple[IncidentMark, ...] = ()
    """Incidents of the case that begin at the commit."""
    irregularities: tuple[IrregularityLine, ...] = ()
    """Spikes, drift and noisier stretches of its series."""

    @property
    def looked_at(self) -> tuple[int, int]:
        """The most results of a series, and the most series, among which these are looked for."""
        return NEWEST, MOST_SERIES

    @property
    def compares(self) -> bool:
        """True if any variant has a ratio to the baseline."""
        return any(row.factor for row in self.variants)

    @property
    def grouped(self) -> bool:
        """True if any variant was measured beside the baseline, group by group."""
        return any(row.groups.log_ratios for row in self.variants)

    @property
    def counted(self) -> bool:
        """True if the memory of any variant was counted."""
        return any(row.layers for row in self.variants)

    @property
    def has_others(self) -> bool:
        """True if anything was measured or counted besides time and memory."""
        return any(row.others for row in self.variants)

    @property
    def compilable(self) -> bool:
        """True if a variant is ours: another library's has no program."""
        return any(row.kind != "external" for row in self.variants)


@dataclass(frozen=True)
class ReportEntry:
    """A report's document and its entry for the case."""

    document: Mapping[str, Any]
    entry: Mapping[str, Any]
    unpooled: Mapping[str, Any] | None = None
    """The entry without the values of other reports, where `entry` has them."""


SeriesComparisons: TypeAlias = Mapping[tuple[str, str], SeriesComparison]
"""Comparisons of series with the commit before, by variant and metric."""


def case_view(
    now: ReportEntry,
    before: ReportEntry | None,
    judged: SeriesComparisons,
    *,
    project: str,
    case: str,
    commit: Commit,
    machine: str,
    report_id: str,
    steps: tuple[Step | None, Step | None],
    claims: Sequence[Claim] = (),
    resolutions: Mapping[tuple[str, str], float] | None = None,
    incidents: tuple[IncidentMark, ...] = (),
    irregularities: tuple[IrregularityLine, ...] = (),
) -> CaseView:
    """The view. `steps` are the commits measured before and after, `claims` what may be said where uploads compare.

    Of the commit `before` the file may be gone; what was `judged` is known without it.
    """
    noticed = resolutions or {}
    variants = tuple(_variants(now.entry, before.entry if before else None, judged, noticed))
    workload = now.entry["case"]["workload"]
    error = now.entry.get("error")
    moved = tuple(_sentences(variants, judged)) if error is None else ()
    return CaseView(
        project=project,
        workload=workload,
        case=case,
        workload_href=links.workload(project, workload, case=case, machine=machine),
        commit=commit,
        machine=machine,
        report_href=links.report(report_id),
        before=steps[0],
        after=steps[1],
        failure=f"{error['kind']}: {error['message']}" if error else None,
        gradient=gradient_in_words(gradient_of(now.entry)),
        sentences=(*_claimed(claims), *moved),
        moved=bool(moved),
        comparable=any(one.reference is not None and one.candidate is not None for one in judged.values()),
        before_is_told=before is not None,
        reasons=tuple(dict.fromkeys(_reasons(variants, judged))),
        variants=variants,
        measured=measured_facts(_as_pair(now), None if before is None else _as_pair(before)),
        equal_code=any(one.is_equal_code for one in judged.values()),
        environment=differing_facts(_environment(before.document), _environment(now.document)) if before else (),
        busy=busy_words(now.document["harness"]),
        reproduce=reproduce_command(now.document, commit, only=now.unpooled or now.entry),
        baseline=baseline_of(now.entry),
        incidents=incidents,
        irregularities=irregularities,
    )


def _as_pair(entry: ReportEntry) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return entry.document, entry.entry


def _reasons(variants: Sequence[VariantBlock], judged: SeriesComparisons) -> Iterator[str]:
    """The reason to doubt that the commit caused the difference."""
    yield from (EQUAL_CODE for one in judged.values() if one.is_equal_code)
    yield from (_reason(one) for one in judged.values() if _is_other_level(one))
    if any(block.since_tone.startswith("likely") for block in variants):
        yield "Times were not measured in the same groups, so their changes are likely, not confirmed."
    doubted = [amount for block in variants for amount in block.amounts if amount.tone == "unsure"]
    yield from dict.fromkeys(amount.reason for amount in doubted if amount.metric not in COUNTED_IN_ONE_SESSION)
    apart = sorted({amount.metric for amount in doubted if amount.metric in COUNTED_IN_ONE_SESSION})
    if apart:
        kinds = ", ".join(metric_label(name) for name in apart)
        yield f"These counts vary between runs, because they depend on what else the process does: {kinds}."


def _is_other_level(judged: SeriesComparison) -> bool:
    """True if both commits were measured, and do not compare."""
    measured = judged.reference is not None and judged.candidate is not None
    return measured and judged.judgement.outcome == "not_comparable"


def _reason(judged: SeriesComparison) -> str:
    return judged.judgement.reason or ""


def _variants(
    now: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    judged: SeriesComparisons,
    noticed: Mapping[tuple[str, str], float],
) -> Iterator[VariantBlock]:
    entries = {entry["variant"]: entry for entry in now.get("variants", [])}
    earlier = {entry["variant"]: entry for entry in (before or {}).get("variants", [])}
    ratios, kept_before = stored_ratios(now), stored_ratios(before or {})
    baseline, baseline_before = baseline_of(now), baseline_of(before or {})
    base, base_before = _processes(entries.get(baseline)), _processes(earlier.get(baseline_before))
    for name in in_reading_order(entries):
        entry, old = entries[name], earlier.get(name)
        paired, paired_before = (of.get((name, "time"), NOTHING_STORED).paired for of in (ratios, kept_before))
        error = entry.get("error")
        ratio, ratio_before = _bounded(paired), _bounded(paired_before)
        is_bigger = bigger_is_better(entry.get("metrics", {}).get("time", {}))
        outcome = paired.outcome if paired else None
        since, since_tone = _since(judged.get((name, "time")))
        yield VariantBlock(
            variant=name,
            kind=entry.get("kind", "external"),
            failure=f"{error['kind']}: {error['message']}" if error else None,
            time=_time(entry),
            time_before=_time_before(entry, old, judged.get((name, "time"))) if old else "",
            factor=factors.factor(*ratio) if ratio else "",
            doubt=factors.interval(*ratio[1:]) if ratio else "",
            words=factors.words(ratio[0], metric="time", outcome=outcome, baseline=baseline) if ratio else "",
            sign=factors.mark(outcome, bigger_is_better=is_bigger),
            tone=factors.tone(outcome, bigger_is_better=is_bigger),
            since=since,
            since_tone=since_tone,
            samples=tuple(_processes(entry)),
            slices=_slices(entry),
            groups=_groups(_processes(entry), base, ratio) if name != baseline else Groups(()),
            groups_before=_groups(_processes(old), base_before, ratio_before)
            if name != baseline_before and old
            else None,
            layers=tuple(_layers(entry, judged)),
            others=tuple(_others(entry, judged)),
            plan=_plan(entry, old),
            resolution=noticed.get((name, "time")),
        )


def _since(judged: SeriesComparison | None) -> tuple[str, str]:
    """The change of a variant's time in words, of its ratio where it has one; and its tone, empty within their scatter."""
    if judged is None or judged.reference is None or judged.candidate is None:
        return "", ""
    judgement = judged.judgement
    before, now = judged.reference.ratio.bounded, judged.candidate.ratio.bounded
    change = judgement.ratio.log_ratio
    if judgement.evidence == "values" and change is not None and judgement.outcome in factors.LIKELY:
        since = factors.shift(change)
    elif now is None or before is None or judged.reference.baseline != judged.candidate.baseline:
        return "", ""
    else:
        since = factors.shift(now[0] - before[0])
    if judged.is_equal_code or _is_other_level(judged) or not judged.is_subject or judgement.evidence not in UNPAIRED:
        return since, ""
    if judged.wrong_gradient is not None and change is not None:
        return since, "unsure" if abs(change) > (judgement.threshold or 0.0) else ""
    moved = judgement.outcome if judgement.outcome in factors.LIKELY else None
    return since, factors.tone(moved, bigger_is_better=judged.bigger_is_better) if moved else ""


def _in_words(judged: SeriesComparison | None, since: str, now: str) -> str:
    """The change of a value, by how much, and where it is now."""
    if judged is not None and judged.judgement.evidence == "values" and judged.candidate is not None:
        return f"time {since}, now {units.quantity(judged.candidate.value, judged.unit or 's')}"
    against = judged.candidate.baseline if judged is not None and judged.candidate is not None else None
    return f"time against {against or BASELINE} {since}{f', now {now}' if now else ''}"


def _layers(entry: Mapping[str, Any], judged: SeriesComparisons) -> Iterator[Layer]:
    metrics, variant = entry.get("metrics", {}), entry["variant"]
    for name, count, size, peak in LAYERS:
        amounts = tuple(
            _amount(metric, metrics.get(metric), judged.get((variant, metric))) for metric in (count, size, peak)
        )
        if any(amount.value is not None for amount in amounts):
            method = next((metrics[m].get("method") for m in (count, size) if m in metrics), None)
            yield Layer(name, method, amounts)


def _others(entry: Mapping[str, Any], judged: SeriesComparisons) -> Iterator[Amount]:
    in_layers = {metric for _, *metrics in LAYERS for metric in metrics}
    for name, metric in entry.get("metrics", {}).items():
        if name != "time" and name not in in_layers:
            amount = _amount(name, metric, judged.get((entry["variant"], name)))
            if amount.value is not None:
                yield amount


def _amount(name: str, metric: Mapping[str, Any] | None, judged: SeriesComparison | None) -> Amount:
    """An amount, and how it differs; of times, which always differ, likely changes are included."""
    value, unit = value_of(metric or {}), (metric or {}).get("unit", "")
    amount = Amount(
        metric=name,
        value=value,
        shown=units.quantity(value, unit),
        exact=units.exact(value, unit),
        change="",
        tone="",
        differs=bool((metric or {}).get("differs")),
    )
    if value is None or judged is None or judged.reference is None or judged.candidate is None:
        return amount
    judgement, difference = judged.judgement, judged.candidate.value - judged.reference.value
    if judgement.outcome in factors.LIKELY and judgement.ratio.log_ratio is not None and judged.is_subject:
        tone = factors.tone(judgement.outcome, bigger_is_better=judged.bigger_is_better)
        return replace(amount, change=factors.shift(judgement.ratio.log_ratio), tone=tone)
    if not difference or not (judged.exact or name in COUNTED_IN_ONE_SESSION):
        return amount
    return replace(
        amount,
        change=units.change(difference, unit),
        tone=_tone(difference, judged),
        reason=doubt_of_count(judged.judgement),
    )


def _plan(entry: Mapping[str, Any], old: Mapping[str, Any] | None) -> PlanChange | None:
    plan, earlier = entry.get("plan") or {}, (old or {}).get("plan") or {}
    hashed = entry.get("program_hash")
    if not plan and hashed is None:
        return None
    listing, listing_before = plan.get("listing") or [], earlier.get("listing") or []
    counts, counts_before = plan_counts(plan), plan_counts(earlier)
    return PlanChange(
        hash=hashed,
        hash_before=(old or {}).get("program_hash"),
        counts=differing_facts(counts_before, counts) if earlier else (),
        lines=program_lines(listing_before, listing) if listing_before and listing else (),
        listing=tuple(listing),
    )


def _sentences(variants: Sequence[VariantBlock], judged: SeriesComparisons) -> Iterator[Sentence]:
    """One for each variant that changed: that it fails or is missing, what its counts did, where the ratio of its time moved."""
    for block in variants:
        if block.failure:
            if any(one.reference is not None for (variant, _), one in judged.items() if variant == block.variant):
                text = f"fails since this commit: {block.failure}"
                yield Sentence(block.variant, "failed", factors.sign("failed"), text)
            continue
        told = [
            (_told(amount, layer), amount)
            for layer in block.layers
            for amount in layer.amounts
            if layer.name in {"arrays", "GPU"} or amount.tone in {"worse", "better"}
        ]
        told += [(metric_label(amount.metric), amount) for amount in block.others]
        parts = [
            (amount.tone, f"{label} {amount.change}, now {amount.shown}") for label, amount in told if amount.change
        ]
        if block.since_tone:
            words = _in_words(judged.get((block.variant, "time")), block.since, block.factor)
            parts.append((block.since_tone, words))
        if parts:
            worst = min((tone for tone, _ in parts), key=_GRAVITY.index)
            yield Sentence(block.variant, worst, factors.sign(worst), "; ".join(text for _, text in parts))
    shown = {block.variant for block in variants}
    for variant in in_reading_order({variant for variant, _ in judged} - shown):
        yield Sentence(variant, "unsure", factors.sign("unsure"), "not measured at this commit")


def _tone(difference: float, judged: SeriesComparison) -> str:
    """The tone of a count that differs: better, worse, or unknown."""
    if doubt_of_count(judged.judgement):
        return "unsure"
    return factors.tone("less" if difference < 0 else "more", bigger_is_better=judged.bigger_is_better)


def _claimed(claims: Sequence[Claim]) -> Iterator[Sentence]:
    """The outcome where two commits were measured in the same groups; the gravest first."""
    for claim in sorted(claims, key=lambda one: _GRAVITY.index(one.tone)):
        text = f"{claim.words}: {claim.reason}" if claim.reason else claim.words
        yield Sentence(claim.variant, claim.tone, factors.sign(claim.tone), text)


def _told(amount: Amount, layer: Layer) -> str:
    return metric_label(amount.metric) if layer.name == "arrays" else metric_label(amount.metric).replace("gpu", "GPU")


def _bounded(paired: PairedRatio | None) -> BoundedLogRatio | None:
    return None if paired is None else paired.ratio.bounded


def _groups(values: Sequence[float], base: Sequence[float], ratio: BoundedLogRatio | None) -> Groups:
    """The ratio of every group: the n-th process of the variant over the n-th of the baseline."""
    if len(values) != len(base) or not all(value > 0 for value in (*values, *base)):
        return Groups(())
    ratios = tuple(math.log(value / reference) for value, reference in zip(values, base, strict=True))
    return Groups(ratios, Ratio(*ratio) if ratio else NO_RATIO)


def _processes(entry: Mapping[str, Any] | None) -> list[float]:
    return list((entry or {}).get("metrics", {}).get("time", {}).get("processes") or [])


def _time(entry: Mapping[str, Any]) -> str:
    time = entry.get("metrics", {}).get("time", {})
    return units.quantity(value_of(time), time.get("unit", "s"))


def _time_before(entry: Mapping[str, Any], old: Mapping[str, Any], judged: SeriesComparison | None) -> str:
    """The time before; where both commits were measured in the same groups, by the change that these state."""
    time = entry.get("metrics", {}).get("time", {})
    now = value_of(time)
    if judged is None or judged.judgement.evidence != "paired" or now is None:
        return _time(old)
    before = value_before(now, judged.judgement.ratio.log_ratio, value_of(old.get("metrics", {}).get("time", {})))
    return units.quantity(before, time.get("unit", "s"))


def _slices(entry: Mapping[str, Any]) -> str:
    time = entry.get("metrics", {}).get("time", {})
    clock = f"{time['clock']} clock" if time.get("clock") else ""
    return samples_in_words(_processes(entry), [len(part) for part in time.get("slices") or []], clock)


def _environment(document: Mapping[str, Any]) -> dict[str, Any]:
    """The environment of the numbers. What differs in every run, as the load before it, is left out."""
    harness = document["harness"]
    facts = {f"harness {name}": harness.get(name) for name in ("version", "suite")}
    uncommitted = {"uncommitted changes": "yes" if document["commit"].get("dirty") else "no"}
    quality = {"harness quality": quality_of(harness.get("quality", CLEAN))}
    return {**_facts(document), **facts, **quality, **uncommitted}


def _facts(document: Mapping[str, Any]) -> Mapping[str, Any]:
    facts: Mapping[str, Any] = document["machine"].get("facts", {})
    return facts
