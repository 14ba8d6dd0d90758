"""The standing of a project's cases: of every workload the worst and the best case of each variant, and means. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pullback_dashboards.history import (
    TIERS,
    Metric,
    against_count,
    baseline_in_words,
    case_order,
    in_reading_order,
)
from pullback_dashboards.wording import factors
from pullback_dashboards.wording.plurals import counted
from pullback_service.ratio import NO_RATIO, Ratio
from pullback_service.readings.reading import Reading
from pullback_service.uploaded_claims import BASELINE, LEAST_CLAIM

_BEYOND = 1e6  # in log ratio: counts with zero or less on one side lie beyond all that have a ratio


def _in_a_cell(baseline: str) -> Mapping[str, str]:
    """The words of a narrow cell for how counts without a ratio differ, in the order in which that is told."""
    return {
        "none": "0",
        f"some, where {baseline} has none": "some",
        f"less than {baseline}": "less",
        f"more than {baseline}": "more",
    }


@dataclass(frozen=True)
class VariantResult:
    """One variant of one case at the newest commit that has it: its reading, or why it failed.

    `base` is the count of the baseline that a count is compared with.
    """

    case: str
    variant: str
    commit_id: int
    reading: Reading | None
    series_id: int | None = None
    baseline: str = BASELINE
    base: float | None = None
    failure: str | None = None

    @property
    def is_baseline(self) -> bool:
        """True if the ratios of other variants of the case are against it."""
        return self.variant == self.baseline

    @property
    def ratio(self) -> Ratio:
        """The ratio to the baseline."""
        return NO_RATIO if self.reading is None else self.reading.ratio

    def badness(self, metric: Metric) -> float | None:
        """The distance from the baseline to the worse side; a failure is the worst. None where there is no ratio."""
        if self.reading is None:
            return math.inf
        if self.reading.ratio.log_ratio is not None:
            return -self.reading.ratio.log_ratio if metric.bigger_is_better else self.reading.ratio.log_ratio
        if self.reading.outcome in {"less", "more"}:
            worse = (self.reading.outcome == "more") != metric.bigger_is_better
            return _BEYOND if worse else -_BEYOND
        return 0.0 if self.reading.outcome == "equal" else None


@dataclass(frozen=True)
class Extremes:
    """The worst and the best case of a variant of a workload, of so many, and how many of these failed."""

    worst: VariantResult
    best: VariantResult
    cases: int
    failed: int

    @property
    def compares(self) -> bool:
        """True if any of them compares with the baseline: what does not ranks last."""
        reading = self.worst.reading
        return reading is not None and (reading.ratio.log_ratio is not None or reading.outcome is not None)


@dataclass(frozen=True)
class RankedWorkload:
    """One workload: its cases, small sizes before large ones, and the extremes of each variant."""

    workload: str
    cases: tuple[str, ...]
    extremes: Mapping[str, Extremes]
    metric: Metric

    @cached_property
    def worst(self) -> float:
        """The badness of the worst tier; peers do not count beside tiers, for they are not ours to mend."""
        return self._most(largest=True)

    @cached_property
    def best(self) -> float:
        """The badness of the best tier."""
        return self._most(largest=False)

    def _most(self, *, largest: bool) -> float:
        variants = [variant for variant in self.extremes if variant in TIERS] or self.extremes
        told = [
            badness
            for variant, extremes in self.extremes.items()
            if variant in variants and not extremes.worst.is_baseline
            for badness in [(extremes.worst if largest else extremes.best).badness(self.metric)]
            if badness is not None
        ]
        return (max if largest else min)(told, default=-math.inf if largest else math.inf)


@dataclass(frozen=True)
class Mean:
    """A variant over all cases: the geometric mean of its factors, and over how many cases it is said.

    Without a ratio the words are of counts with zero or less on one side, and say themselves of how many.
    """

    variant: str
    value: str
    words: str
    tone: str
    depth: int
    cases: int
    log_ratio: float | None
    busy: int = 0
    """The number of its cases that something else disturbed; of counts none, for these it leaves alone."""


def against_baseline(
    items: Iterable[VariantResult], metric: Metric, earlier: Mapping[tuple[str, int], float]
) -> tuple[VariantResult, ...]:
    """Counts get their ratio to the baseline of the same commit; times come with theirs.

    `earlier` has the counts of baselines at commits at which they do not stand any more, by case and commit.
    """
    known = tuple(items)
    if not metric.exact:
        return known
    now = {(one.case, one.commit_id): one.reading.value for one in known if one.is_baseline and one.reading}
    bases = {**earlier, **now}
    return tuple(_compared(one, bases.get((one.case, one.commit_id))) for one in known)


def _compared(result: VariantResult, base: float | None) -> VariantResult:
    if result.is_baseline or result.reading is None or base is None:
        return result
    return replace(result, reading=against_count(result.reading, base, result.baseline), base=base)


def ranked(
    workloads: Mapping[str, Sequence[str]], items: Iterable[VariantResult], metric: Metric
) -> tuple[RankedWorkload, ...]:
    """Every workload that has a number or a failure, in the order given."""
    by_case: dict[str, list[VariantResult]] = {}
    for one in items:
        by_case.setdefault(one.case, []).append(one)
    return tuple(
        RankedWorkload(
            workload,
            tuple(sorted(told, key=case_order)),
            _extremes([one for case in told for one in by_case[case]], metric),
            metric=metric,
        )
        for workload, cases in workloads.items()
        if (told := [case for case in cases if case in by_case])
    )


def in_order(workloads: Sequence[RankedWorkload], order: str) -> tuple[RankedWorkload, ...]:
    """Rows sorted by name, or with the worst or the best tier first."""
    if order == "worst":
        return tuple(sorted(workloads, key=lambda one: -one.worst))
    if order == "best":
        return tuple(sorted(workloads, key=lambda one: one.best))
    return tuple(workloads)


def means(items: Iterable[VariantResult], metric: Metric) -> tuple[Mean, ...]:
    """The mean of every variant over all cases that are chosen, on whichever page they are."""
    by_variant: dict[str, list[VariantResult]] = {}
    for one in items:
        by_variant.setdefault(one.variant, []).append(one)
    return tuple(_mean(variant, by_variant[variant], metric) for variant in in_reading_order(by_variant))


def _extremes(items: Iterable[VariantResult], metric: Metric) -> dict[str, Extremes]:
    by_variant: dict[str, list[VariantResult]] = {}
    for one in items:
        by_variant.setdefault(one.variant, []).append(one)
    return {variant: _extreme(group, metric) for variant, group in by_variant.items()}


def _extreme(group: Sequence[VariantResult], metric: Metric) -> Extremes:
    def place(one: VariantResult) -> tuple[float, float]:
        badness = one.badness(metric)
        return (-math.inf if badness is None else badness, one.reading.value if one.reading else 0.0)

    sound = [one for one in group if one.reading] or group
    return Extremes(
        max(group, key=place),
        min(sound, key=place),
        len(group),
        sum(one.reading is None for one in group),
    )


def _mean(variant: str, group: Sequence[VariantResult], metric: Metric) -> Mean:
    """The mean of log ratios. Where a count is zero or less on one side there is none: such cases are told beside the others."""
    sound = [one for one in group if one.reading]
    logs = [one.ratio.log_ratio for one in sound if one.ratio.log_ratio is not None]
    baseline = baseline_in_words(one.baseline for one in group)
    apart = Counter(reason for one in sound if (reason := _apart(one, baseline)))
    if apart:
        return _told(variant, sound, apart, logs, metric, baseline)
    if not logs:
        return Mean(variant, "" if all(one.is_baseline for one in group) else "–", "", "plain", 0, 0, None)
    mean = sum(logs) / len(logs)
    outcome = _outcome(mean, metric)
    tone = factors.tone(outcome, bigger_is_better=metric.bigger_is_better)
    disturbed = _disturbed(sound, metric)
    return Mean(
        variant,
        factors.factor(mean),
        _words(mean, metric, baseline),
        tone,
        factors.depth(mean),
        len(logs),
        mean,
        disturbed,
    )


def _disturbed(sound: Sequence[VariantResult], metric: Metric) -> int:
    return sum(
        one.reading.is_busy
        for one in sound
        if one.reading and one.reading.ratio.log_ratio is not None and not metric.exact
    )


def _apart(result: VariantResult, baseline: str) -> str:
    """The difference of a count without a ratio from that of the baseline; empty where it has one, or has no baseline."""
    reading, base = result.reading, result.base
    if (
        reading is None
        or base is None
        or reading.outcome not in {"less", "more"}
        or reading.ratio.log_ratio is not None
    ):
        return ""
    return factors.apart(reading.value, base, baseline=baseline)


def _told(
    variant: str,
    sound: Sequence[VariantResult],
    apart: Counter[str],
    logs: Sequence[float],
    metric: Metric,
    baseline: str,
) -> Mean:
    """The cases without a ratio, of all that are compared with the baseline, and the mean of those that have one."""
    badness = [far for one in sound if (far := one.badness(metric)) is not None]
    in_a_cell = _in_a_cell(baseline)
    kinds = [kind for kind in in_a_cell if apart[kind]]
    cases = counted(len(badness), "case")
    parts = [f"{kind}{',' if ',' in kind else ''} in {apart[kind]} of {cases}" for kind in kinds]
    if logs:
        those = "one" if len(logs) == 1 else f"{len(logs)}"
        parts.append(f"{_words(sum(logs) / len(logs), metric, baseline)} over the {those} with a ratio")
    tones = {"worse" if far > 0 else "better" for far in badness if far}
    tone = tones.pop() if len(tones) == 1 else "unsure"
    value = f"{in_a_cell[kinds[0]]} in {apart[kinds[0]]} of {len(badness)}"
    return Mean(variant, value, ", and ".join(parts), tone, 0 if tone == "unsure" else 5, len(badness), None)


def _outcome(mean: float, metric: Metric) -> str:
    return "same" if abs(mean) < LEAST_CLAIM else "faster" if (mean < 0) != metric.bigger_is_better else "slower"


def _words(mean: float, metric: Metric, baseline: str) -> str:
    return factors.words(mean, metric=metric.name, outcome=_outcome(mean, metric), baseline=baseline)
