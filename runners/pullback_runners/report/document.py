"""A case of a report, from what was measured. Pure: plain values in, plain values out."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback_runners.errors import VariantError
from pullback_runners.measurement.examination import Examination
from pullback_runners.measurement.lockstep import Group, Timing
from pullback_runners.measurement.outcomes import exact_log_ratio, exact_outcome, margin, noisy_outcome
from pullback_runners.measurement.statistics import RatioEstimate, interquartile_mean, pair_log_ratio, ratio_estimate
from pullback_runners.variants import BASELINE, kind_of
from pullback_runners.workloads import Case

FORMAT = "pullback-report"
VERSION = 1


@dataclass
class CaseResult:
    """All that was measured of one case."""

    case: Case
    variants: Sequence[str]
    examinations: dict[str, Examination] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    failures: dict[str, VariantError] = field(default_factory=dict)

    def leave_out_unavailable(self, wanted: Collection[str]) -> None:
        """Forget the variants that do not exist here, but for those that are wanted: their absence is a failure."""
        absent = {name for name, failure in self.failures.items() if failure.kind == "unavailable"} - set(wanted)
        self.variants = [variant for variant in self.variants if variant not in absent]
        for name in absent:
            del self.failures[name]

    def measured_variants(self) -> list[str]:
        """The variants that nothing went wrong with; none if the baseline failed, since every ratio is against it."""
        if BASELINE in self.failures:
            return []
        return [variant for variant in self.variants if variant not in self.failures]

    def time_estimates(self) -> dict[str, RatioEstimate]:
        """The time ratio to the baseline of each variant that was timed in two groups or more."""
        if len(self.groups) < 2:
            return {}
        return {
            variant: ratio_estimate(
                [pair_log_ratio(g.timings[variant].cpu_s, g.timings[BASELINE].cpu_s) for g in self.groups]
            )
            for variant in self.measured_variants()
            if variant != BASELINE
        }


def case_document(result: CaseResult, *, may_say_same: bool) -> dict[str, Any]:
    """Return a case of a report. A variant that failed keeps its place, with its reason and without numbers.

    If the baseline failed there is nothing to compare with: the case itself has failed, with every variant.
    """
    return {
        "case": result.case.document(),
        "gradient": _gradient(result),
        "error": _error(result),
        "variants": [_variant_document(result, variant) for variant in result.variants],
        "paired": [
            row
            for variant in result.variants
            if variant != BASELINE
            for row in _paired(result, variant, may_say_same=may_say_same)
        ],
    }


def _gradient(result: CaseResult) -> dict[str, Any]:
    """The worst of the checks behind the case's numbers; a variant whose own gradient was wrong has no numbers."""
    checks = [result.examinations[variant].gradient for variant in result.measured_variants()]
    return {
        "ok": bool(checks) and all(check["ok"] for check in checks),
        "max_rel_error": max((check["max_rel_error"] for check in checks), default=None),
        "oracle": "closed form",
    }


def _error(result: CaseResult) -> dict[str, Any] | None:
    """Why the case gave nothing at all: its baseline failed. What another variant died of is said at the variant."""
    error = result.failures.get(BASELINE)
    return {"kind": error.kind, "message": f"{BASELINE}: {error.message}"} if error else None


def _variant_document(result: CaseResult, variant: str) -> dict[str, Any]:
    name = {"variant": variant, "kind": kind_of(variant)}
    if variant not in result.measured_variants():
        failure = result.failures.get(variant) or result.failures[BASELINE]
        return {**name, "error": {"kind": failure.kind, "message": failure.message}, "metrics": {}}
    examination = result.examinations[variant]
    plan = examination.plan
    return {
        **name,
        "error": None,
        "metrics": {
            "time": _time_metric([group.timings[variant] for group in result.groups]),
            **examination.counts,
        },
        "gradient": examination.gradient,
        "program_hash": (plan or {}).get("hash"),
        "plan": plan,
    }


def _time_metric(timings: Sequence[Timing]) -> dict[str, Any]:
    """Seconds a call: one interquartile mean a process, and every slice."""
    return {
        "unit": "s",
        "clock": "cpu",
        "processes": [_seconds(interquartile_mean(timing.cpu_s)) for timing in timings],
        "slices": [[_seconds(value) for value in timing.cpu_s] for timing in timings],
        "wall_processes": [_seconds(interquartile_mean(timing.wall_s)) for timing in timings],
        "wall_slices": [[_seconds(value) for value in timing.wall_s] for timing in timings],
        "calls": [timing.calls for timing in timings],
        "run_delay_s": [timing.run_delay_s for timing in timings],
    }


def _seconds(value: float) -> float:
    """To six digits, a thousandth of what is looked for, so that a report is a third as long."""
    return float(f"{value:.6g}")


def _paired(result: CaseResult, variant: str, *, may_say_same: bool) -> list[dict[str, Any]]:
    row: dict[str, Any] = {"variant": variant, "baseline": BASELINE}
    if variant not in result.measured_variants():
        nothing = {"log_ratio": None, "low": None, "high": None, "n": 0}
        return [{**row, "metric": "time", **nothing, "outcome": "failed"}]
    rows = []
    estimate = result.time_estimates().get(variant)
    if estimate is not None:
        smallest = margin()
        rows.append(
            {
                **row,
                "metric": "time",
                "log_ratio": _rounded(estimate.log_ratio),
                "low": _rounded(estimate.low),
                "high": _rounded(estimate.high),
                "n": estimate.n,
                "outcome": noisy_outcome(estimate, smallest, may_say_same=may_say_same),
                "margin": smallest,
                "margin_is_provisional": True,
            }
        )
    ours, theirs = result.examinations[variant].counts, result.examinations[BASELINE].counts
    rows.extend(
        {**row, "metric": metric, **_exact(ours[metric], theirs[metric])}
        for metric in ours
        if ours[metric]["value"] is not None and theirs[metric]["value"] is not None
    )
    return rows


def _exact(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    ratio = exact_log_ratio(ours["value"], theirs["value"])
    rounded = None if ratio is None else _rounded(ratio)
    return {
        "log_ratio": rounded,
        "low": rounded,
        "high": rounded,
        "n": 1,
        "outcome": exact_outcome(ours["value"], theirs["value"]),
        "difference": ours["value"] - theirs["value"],
    }


def _rounded(log_ratio: float) -> float:
    """To six decimals, a hundredth of a per mille of the ratio."""
    return round(log_ratio, 6) if math.isfinite(log_ratio) else log_ratio
