"""The comparisons of a report, and the cases they were made on. Pure: plain values in, plain values out."""

from collections.abc import Iterator, Sequence
from typing import Any

from pullback_runners.measurement.comparison import CANDIDATE, REFERENCE, Comparison
from pullback_runners.measurement.lockstep import Group
from pullback_runners.measurement.outcomes import are_apart
from pullback_runners.measurement.statistics import interquartile_mean
from pullback_runners.report.document import (
    counts_document,
    failed_variant,
    gradient_document,
    measured_variant,
    ratio_document,
    seconds,
)
from pullback_runners.workloads import CPU, AvailableVariants, Case

_NOTHING = {"log_ratio": None, "low": None, "high": None, "n": 0}


def compared_case(case: Case, offer: AvailableVariants, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """A case of the report: what the candidate measured. Without a baseline in its groups it has no ratios to one."""
    measured = [each.examinations[CANDIDATE].gradient for each in comparisons if CANDIDATE in each.examinations]
    return {
        "case": case.document(),
        "gradient": gradient_document(measured),
        "error": None,
        "variants": [_variant(each, offer) for each in comparisons],
        "paired": [],
    }


def _variant(comparison: Comparison, offer: AvailableVariants) -> dict[str, Any]:
    member, failure = comparison.candidate, comparison.failure()
    if failure is not None:
        return failed_variant(member.variant, failure)
    timings = [group.timings[CANDIDATE] for group in comparison.groups]
    return measured_variant(comparison.case, member, comparison.examinations[CANDIDATE], timings, offer)


def comparison_rows(comparison: Comparison, *, may_say_same: bool, is_busy: bool) -> Iterator[dict[str, Any]]:
    """One row a metric, without the commits' names; of a comparison that failed one row with the reason."""
    row = {"case": comparison.case.document(), "variant": comparison.candidate.variant}
    failure = comparison.failure()
    if failure is not None:
        yield {**row, "metric": "time", **_NOTHING, "outcome": "failed", "error": failure}
        return
    estimate = comparison.estimate()
    if estimate is not None:
        floor = comparison.margins(is_busy=is_busy)
        yield {
            **row,
            "metric": "time",
            **ratio_document(estimate, floor, may_say_same=may_say_same),
            "log_ratios": [round(log_ratio, 6) for log_ratio in comparison.log_ratios()],
            "twin_log_ratios": [round(log_ratio, 6) for log_ratio in comparison.twin_log_ratios()],
            "reference_s": [
                seconds(interquartile_mean(_slices(comparison.case, group))) for group in comparison.groups
            ],
        }
    for metric, (theirs, ours) in comparison.counts().items():
        counts = counts_document(ours[0], theirs[0])
        if counts["outcome"] != "equal" and not are_apart(ours, theirs):
            counts["outcome"] = "ambiguous"  # two processes of one commit do not count alike either
        yield {**row, "metric": metric, **counts, "values": [theirs[0]["value"], ours[0]["value"]]}


def _slices(case: Case, group: Group) -> list[float]:
    """The slices of the reference: seconds of the CPU, on a device those of the wall."""
    timing = group.timings[REFERENCE]
    return timing.cpu_s if case.device == CPU else timing.wall_s
