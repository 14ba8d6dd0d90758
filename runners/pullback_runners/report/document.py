"""A case of a report, from what was measured. Pure: plain values in, plain values out."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pullback_runners.errors import VariantError
from pullback_runners.measurement.clocks import clock_of
from pullback_runners.measurement.examination import Examination
from pullback_runners.measurement.lockstep import Group, Timing, paired_slices
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.outcomes import (
    Margins,
    are_apart,
    exact_log_ratio,
    exact_outcome,
    margins,
    noisy_outcome,
)
from pullback_runners.measurement.statistics import (
    RatioEstimate,
    interquartile_mean,
    noise_floor,
    pair_log_ratio,
    ratio_estimate,
)
from pullback_runners.measurement.subject import INSTALLED, Subject
from pullback_runners.variants import kind_of
from pullback_runners.workloads import CPU, UNFUSED, AvailableVariants, Case

FORMAT = "pullback-report"
VERSION = 1


BESIDE = {"device_time": "events", "host_time": "wall", "time_cold": "wall"}
"""Times on a device that stand beside the one that decides, each with its clock."""

_MOST_NAMED = 3
"""Longer lists of cases are cut in sentences."""

_LONGEST_MESSAGE = 10_000
"""Characters of an error message, which may hold whatever a commit raised: the service takes 20,000."""


@dataclass
class CaseResult:
    """All that was measured of one case. Without a baseline, or where that has no form for the device, there are no ratios."""

    case: Case
    variants: Sequence[str]
    baseline: str | None = UNFUSED
    subject: Subject = INSTALLED
    with_twin: bool = False
    examinations: dict[str, Examination] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    failures: dict[str, VariantError] = field(default_factory=dict)
    offer: AvailableVariants | None = None
    absent: dict[str, VariantError] = field(default_factory=dict)
    """Variants of the suite that do not exist here: no failures, but to be told of."""

    @property
    def twin(self) -> str:
        """The second process of the baseline in a group; what lies between the two is noise."""
        return f"{self.baseline} twin"

    def leave_out_unavailable(self, wanted: Collection[str]) -> None:
        """Set aside the variants that do not exist here, but for those that are wanted: their absence is a failure."""
        absent = {name for name, failure in self.failures.items() if failure.kind == "unavailable"} - set(wanted)
        self.variants = [variant for variant in self.variants if variant not in absent]
        for name in sorted(absent):
            self.absent[name] = self.failures.pop(name)

    def measured_variants(self) -> list[str]:
        """The variants that nothing went wrong with; none if the baseline failed, since every ratio is against it."""
        if self.baseline in self.failures:
            return []
        return [variant for variant in self.variants if variant not in self.failures]

    def members(self) -> list[Member]:
        """The members of the next group; one alone needs none, there is nothing to compare."""
        measured = self.measured_variants()
        twin = (
            [Member(self.baseline, self.subject, role=self.twin)]
            if self.with_twin
            and self.baseline is not None
            and self.baseline in measured
            and self.twin not in self.failures
            else []
        )
        return [Member(variant, self.subject) for variant in measured] + twin

    def time_estimates(self) -> dict[str, RatioEstimate]:
        """The time ratio to the baseline of each variant that was timed in two groups or more."""
        if len(self.groups) < 2 or self.baseline not in self.variants:
            return {}
        return {
            variant: ratio_estimate(
                [
                    pair_log_ratio(*paired_slices(self.case, [group.timings[variant], *self._baselines(group)]))
                    for group in self.groups
                ]
            )
            for variant in self.measured_variants()
            if variant != self.baseline
        }

    def twin_log_ratios(self) -> list[float]:
        """Distances of the twins of the baseline from each other, group by group."""
        pairs = [self._baselines(group) for group in self.groups]
        return [pair_log_ratio(*paired_slices(self.case, pair[::-1])) for pair in pairs if len(pair) == 2]

    def margins(self, *, is_busy: bool = False) -> Margins:
        """The smallest differences that may be claimed, from the twins; what a busy machine makes of them where these are too few."""
        groups = max(len(self.groups), 1)
        return margins(noise_floor(self.twin_log_ratios(), groups), busy_groups=groups if is_busy else None)

    def is_ambiguous(self, *, may_say_same: bool) -> bool:
        """True if more groups might decide what is ambiguous now."""
        smallest = self.margins()
        estimates = self.time_estimates().values()
        return any(noisy_outcome(e, smallest, may_say_same=may_say_same) == "ambiguous" for e in estimates)

    def _baselines(self, group: Group) -> list[Timing]:
        return [group.timings[name] for name in (self.baseline, self.twin) if name in group.timings]


def absences(measured: Iterable[tuple[Case, Mapping[str, VariantError | str]]]) -> list[str]:
    """A sentence for the variants that some of these cases do not have for the same reasons, which are by case and variant."""
    reasons: dict[str, dict[str, str]] = {}
    cases = set()
    for case, absent in measured:
        cases.add(case.name)
        for variant, reason in absent.items():
            reasons.setdefault(variant, {})[case.name] = _shortened(str(reason))
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for variant, by_case in reasons.items():
        alike.setdefault(tuple(by_case.items()), []).append(variant)
    return [_absence(variants, dict(by_case), len(cases)) for by_case, variants in alike.items()]


def _absence(variants: Sequence[str], reasons: Mapping[str, str], cases: int) -> str:
    taking = f"{', '.join(variants)} {'takes' if len(variants) == 1 else 'take'}"
    first, *others = dict.fromkeys(reasons.values())
    more = f"; and {len(others)} more of the kind" if others else ""
    if len(reasons) == cases:
        return f"{taking} part in no case: {first}{more}"
    named = list(reasons)[:_MOST_NAMED]
    unnamed = f" and {len(reasons) - len(named)} more" if len(reasons) > len(named) else ""
    return f"{taking} no part in {', '.join(named)}{unnamed}: {first}{more}"


def case_document(result: CaseResult, *, may_say_same: bool, is_busy: bool = False) -> dict[str, Any]:
    """Return a case of a report. A variant that failed keeps its place, with its reason and without numbers.

    If the baseline failed there is nothing to compare with: the case itself has failed, with every variant.
    """
    return {
        "case": result.case.document(),
        "baseline": result.baseline if result.baseline in result.variants else None,
        "gradient": gradient_document([result.examinations[name].gradient for name in result.measured_variants()]),
        "twins": _twins(result),
        "error": _error(result),
        "variants": [_variant_document(result, variant) for variant in result.variants],
        "paired": [
            row
            for variant in result.variants
            if variant != result.baseline and result.baseline in result.variants
            for row in _paired(result, variant, may_say_same=may_say_same, is_busy=is_busy)
        ],
    }


def _twins(result: CaseResult) -> dict[str, Any] | None:
    """The measurements of two processes of the same program against each other in every group, and the floor made of them."""
    log_ratios = result.twin_log_ratios()
    if not log_ratios:
        return None
    floor = noise_floor(log_ratios, len(result.groups))
    return {
        "variant": result.baseline,
        "log_ratios": [_rounded(log_ratio) for log_ratio in log_ratios],
        "floor": None if floor is None else _rounded(floor),
    }


def gradient_document(checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The worst of the checks behind the case's numbers; a variant whose own gradient was wrong has no numbers."""
    return {
        "ok": bool(checks) and all(check["ok"] for check in checks),
        "max_rel_error": max((check["max_rel_error"] for check in checks), default=None),
        "oracle": " and ".join(sorted({check["oracle"] for check in checks})) or None,
    }


def _error(result: CaseResult) -> dict[str, Any] | None:
    """The failure of the whole case: that of its baseline. Failures of other variants are stored with the variant."""
    error = result.failures.get(result.baseline) if result.baseline else None
    return {"kind": error.kind, "message": _shortened(f"{result.baseline}: {error.message}")} if error else None


def _variant_document(result: CaseResult, variant: str) -> dict[str, Any]:
    if variant not in result.measured_variants():
        baseline = str(result.baseline)
        failure = result.failures.get(variant)
        if failure is None:
            failure = VariantError(
                result.failures[baseline].kind, f"not measured, since its baseline {baseline} failed"
            )
        return failed_variant(variant, {"kind": failure.kind, "message": failure.message})
    timings = [group.timings[variant] for group in result.groups]
    member = Member(variant, result.subject)
    return measured_variant(result.case, member, result.examinations[variant], timings, result.offer)


def failed_variant(variant: str, error: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a variant that failed: its place and its reason."""
    reason = {**error, "message": _shortened(error["message"])}
    return {"variant": variant, "kind": kind_of(variant), "error": reason, "metrics": {}}


def _shortened(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]} …"


def measured_variant(
    case: Case, member: Member, examination: Examination, timings: Sequence[Timing], offer: AvailableVariants | None
) -> dict[str, Any]:
    """The entry of a variant that did not fail."""
    environment = examination.environment
    metrics = {"time": _time_metric(case, timings), **examination.counts}
    if case.device != CPU:
        metrics |= _beside_metrics(timings)
        metrics["time"] |= _device_metric(timings)
        metrics = {name: _in_environment(metric, environment) for name, metric in metrics.items()}
        for name, metric in metrics.items():
            if name.startswith("gpu_") and metric["value"] is None:
                metric["reason"] = "its engine's pool does not report the memory of one call"
    return {
        "variant": member.variant,
        "kind": kind_of(member.variant),
        "error": None,
        "metrics": metrics,
        **({"environment": dict(environment)} if environment else {}),
        "gradient": examination.gradient,
        "program_hash": (examination.plan or {}).get("program"),
        "plan": examination.plan,
        "digests": _digests(offer, member, examination.plan),
    }


def _device_metric(timings: Sequence[Timing]) -> dict[str, Any]:
    """The slices in which a device was throttled, and its clocks, process by process."""
    return {
        "method": "wall",
        "throttled": [timing.throttled for timing in timings],
        "clocks": [
            {
                "sm_mhz": _span(each.sm_mhz for each in timing.clocks),
                "memory_mhz": _span(each.memory_mhz for each in timing.clocks),
                "reasons": sorted({reason for each in timing.clocks for reason in each.throttled}),
            }
            for timing in timings
        ],
    }


def _span(values: Iterable[int | None]) -> list[int] | None:
    values_known = [value for value in values if value is not None]
    return [min(values_known), max(values_known)] if values_known else None


def _beside_metrics(timings: Sequence[Timing]) -> dict[str, Any]:
    """The other times of a call on a device. They stand beside the wall's, which decides."""
    metrics: dict[str, Any] = {}
    for name, method in BESIDE.items():
        processes = [interquartile_mean(timing.beside[name]) for timing in timings if name in timing.beside]
        if processes:
            metrics[name] = {"unit": "s", "method": method, "processes": [seconds(each) for each in processes]}
        else:
            reason = "its engine gives no events of the device" if timings else "not timed"
            metrics[name] = {"unit": "s", "method": None, "value": None, "reason": reason}
    return metrics


def _in_environment(metric: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """A metric of a device whose method names the environment: with another one it is another level of its series."""
    if metric["method"] is None:
        return dict(metric)
    versions = [f"{name} {version}" for name, version in environment.items()]
    return {**metric, "method": ", ".join([metric["method"], *versions])}


def _digests(offer: AvailableVariants | None, member: Member, plan: Mapping[str, Any] | None) -> dict[str, str | None]:
    """Digests of the measured code: the workload's text, the subject's files, and the code compiled from them.

    An engine's peers run nothing of it, and a plan's program is what LLVM was given.
    """
    subject = member.subject
    runs_subject = not (subject.has_engine and kind_of(member.variant) == "peer")
    return {
        "workload": None if offer is None else offer.digest(member.variant),
        "subject": subject.digest if runs_subject else None,
        "code": (plan or {}).get("program") or (subject.code if runs_subject else None),
    }


def _time_metric(case: Case, timings: Sequence[Timing]) -> dict[str, Any]:
    """Seconds a call: one interquartile mean a process, and every slice.

    Beside them how slices were calibrated, what the clock costs, and the numbers of slices in which the process waited for
    a CPU.
    """
    by_clock = {"cpu": [timing.cpu_s for timing in timings], "wall": [timing.wall_s for timing in timings]}
    clock = clock_of(case)
    other: Literal["cpu", "wall"] = "wall" if clock == "cpu" else "cpu"
    return {
        "unit": "s",
        "clock": clock,
        "processes": [seconds(interquartile_mean(slices)) for slices in by_clock[clock]],
        "slices": [[seconds(value) for value in slices] for slices in by_clock[clock]],
        f"{other}_processes": [seconds(interquartile_mean(slices)) for slices in by_clock[other]],
        f"{other}_slices": [[seconds(value) for value in slices] for slices in by_clock[other]],
        "calls": [timing.calls for timing in timings],
        "timer_s": [seconds(timing.timer_s) for timing in timings],
        "waited": [timing.disturbed() for timing in timings],
    }


def seconds(value: float) -> float:
    """Round to six digits, a thousandth of the smallest change of interest, so that a report is a third as long."""
    return float(f"{value:.6g}")


def _paired(result: CaseResult, variant: str, *, may_say_same: bool, is_busy: bool) -> list[dict[str, Any]]:
    row: dict[str, Any] = {"variant": variant, "baseline": result.baseline}
    if variant not in result.measured_variants():
        nothing = {"log_ratio": None, "low": None, "high": None, "n": 0}
        return [{**row, "metric": "time", **nothing, "outcome": "failed"}]
    rows = []
    estimate = result.time_estimates().get(variant)
    if estimate is not None:
        smallest = result.margins(is_busy=is_busy)
        rows.append({**row, "metric": "time", **ratio_document(estimate, smallest, may_say_same=may_say_same)})
    ours, theirs = result.examinations[variant].counts, result.examinations[str(result.baseline)].counts
    rows.extend(
        {**row, "metric": metric, **counts_document(ours[metric], theirs[metric])}
        for metric in ours
        if metric in theirs and ours[metric]["value"] is not None and theirs[metric]["value"] is not None
    )
    return rows


def ratio_document(estimate: RatioEstimate, smallest: Margins, *, may_say_same: bool) -> dict[str, Any]:
    """The entry of a noisy metric."""
    return {
        "log_ratio": _rounded(estimate.log_ratio),
        "low": _rounded(estimate.low),
        "high": _rounded(estimate.high),
        "n": estimate.n,
        "outcome": noisy_outcome(estimate, smallest, may_say_same=may_say_same),
        "margin": _rounded(smallest.same),
        "claim": _rounded(smallest.claim),
        "margin_is_provisional": smallest.is_provisional,
    }


def counts_document(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of an exact metric. Calls of one program that differ hide a difference unless none comes near the other's."""
    ratio = exact_log_ratio(ours["value"], theirs["value"])
    outcome: str = exact_outcome(ours["value"], theirs["value"])
    if outcome != "equal" and not are_apart([ours], [theirs]):
        outcome = "ambiguous"
    if ratio is not None and abs(ratio) <= max(ours.get("tolerance", 0), theirs.get("tolerance", 0)):
        outcome = "equal"
    rounded = None if ratio is None else _rounded(ratio)
    return {
        "log_ratio": rounded,
        "low": rounded,
        "high": rounded,
        "n": 1,
        "outcome": outcome,
        "difference": ours["value"] - theirs["value"],
    }


def _rounded(log_ratio: float) -> float:
    """Round to six decimals, a hundredth of a per mille of the ratio."""
    return round(log_ratio, 6) if math.isfinite(log_ratio) else log_ratio
