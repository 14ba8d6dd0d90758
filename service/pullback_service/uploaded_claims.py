"""The rule of outcomes applied to claims of uploads: whether their numbers support them. Pure.

A wrong outcome is worse than none, and an upload may say anything. So what is claimed is compared with its own ratio,
interval and number of groups, and is `ambiguous` where they do not bear it out; the sentence says why.
"""

from collections.abc import Mapping
from math import inf, log
from typing import Final

from pullback_service.ratio import Ratio

LEAST_CLAIM = 0.005
"""Nothing is called faster or slower below this (decision 38); an upload says its own claim where it is higher."""
USUAL_MARGIN = 0.01
"""Nothing is called the same whose interval leaves this; an upload says its own margin where it is higher."""
WIDEST_MARGIN = 0.1
"""The most that a margin is believed: identical programs that come farther apart were measured on no quiet machine."""
BUSY_FLOOR = 0.14
"""The least change of a ratio that is likely on a busy machine whose noise nobody has measured, by the root of the number of groups; the runner's own rule."""
FEWEST_GROUPS = 2
"""An interval comes from at least so many groups."""

BASELINE: Final = "unfused"
"""The variant that ratios are against where an upload names no other."""

COUNTED = frozenset({"less", "more", "equal"})
CLAIMED = frozenset({"slower", "faster"})

EXACT_METRICS = frozenset(
    {
        *("peak_bytes", "array_bytes", "array_allocs", "native_bytes", "native_allocs", "state_bytes", "kernels"),
        *("gpu_bytes", "gpu_allocs"),
    }
)
"""Counted, not timed: any change of these is a change."""

COUNTED_IN_ONE_SESSION: Mapping[str, float] = {
    "python_bytes": 0.0,
    "python_allocs": 0.0,
    "python_peak_bytes": 0.0,
    "native_peak_bytes": 0.0,
    "gpu_peak_bytes": 0.0,
    "instructions": 0.001,
}
"""Counts that compare where one session made both of them, with the least ratio that is a difference.

Between two sessions they say nothing: requests of CPython's allocators change with any line of Python, peaks with the order
in which others ask, instructions with what the linker put where.
"""
BESIDE = frozenset({"device_time", "host_time", "time_cold"})
"""Times on a device that stand beside the one that decides: shown, and they accuse nobody."""
UNWATCHED = frozenset({*COUNTED_IN_ONE_SESSION, *BESIDE})
"""Metrics that nobody is told of when they change."""
TIMES = frozenset({"time"})
"""Measured, whatever an upload says of them."""


def outcome_of_counts(value: float, reference: float, *, least: float = 0.0) -> tuple[str, float | None]:
    """The outcome of comparing a count with another, and the natural log of value/reference, None from or to zero.

    A ratio of `least` in size is no difference yet.
    """
    log_ratio = log_ratio_of(reference, value) if value > 0 and reference > 0 else None
    if value == reference or (log_ratio is not None and abs(log_ratio) <= least):
        return "equal", log_ratio
    return "more" if value > reference else "less", log_ratio


def log_ratio_of(reference: float, candidate: float) -> float:
    """Natural log of candidate/reference, of values above zero."""
    factor = candidate / reference
    return log(factor) if 0 < factor < inf else log(candidate) - log(reference)


def doubt_of_change(software: str) -> str:
    """The reason why a changed count is not attributed to the commit: software that changed with it."""
    return f"Counted with different software ({software}): count both commits in one installation to know."


def doubt_of_count(outcome: str, log_ratio: float | None, *, least: float = 0.0) -> str | None:
    """The reason why a count is not `outcome`, or None. A ratio from or to zero is None.

    A ratio of `least` in size may still be called equal.
    """
    if outcome == "ambiguous":
        return "Counts differ between processes of one program."
    if outcome not in COUNTED:
        return f"The upload states {outcome} for a count."
    agrees = (
        log_ratio is None or {"more": log_ratio > 0, "less": log_ratio < 0, "equal": abs(log_ratio) <= least}[outcome]
    )
    return None if agrees else f"The upload states {outcome}, but its ratio does not."


def kind_of_metric(metric: str, *, exact: bool) -> str | None:
    """The kind of a stored metric as reports state it; None leaves that to its name."""
    if exact:
        return "exact"
    return None if metric in COUNTED_IN_ONE_SESSION else "noisy"


def doubt_of_measurement(
    outcome: str,
    ratio: Ratio,
    *,
    claim: float | None = None,
    margin: float | None = None,
    provisional: bool = False,
    bigger_is_better: bool = False,
) -> str | None:
    """The reason why a measurement is not `outcome`, or None if its interval supports it."""
    if outcome in COUNTED:
        return f"The upload states {outcome} for a value that was measured, not counted."
    bounded, n = ratio.bounded, ratio.n
    if bounded is None or not bounded[1] <= bounded[0] <= bounded[2]:
        return "The upload has no interval for its ratio."
    log_ratio, low, high = bounded
    if n is None or n < FEWEST_GROUPS:
        groups = "an unknown number of groups" if n is None else "1 group" if n == 1 else f"{n} groups"
        return f"The interval is of {groups}: at least {FEWEST_GROUPS} are needed."
    if outcome in CLAIMED:
        slower = (log_ratio < 0) if bigger_is_better else (log_ratio > 0)
        is_claimable = (low > 0 or high < 0) and abs(log_ratio) >= max(LEAST_CLAIM, claim or 0.0)
        is_borne_out = is_claimable and slower == (outcome == "slower")
    elif outcome == "same":
        most = min(max(USUAL_MARGIN, margin or 0.0), WIDEST_MARGIN)
        is_borne_out = -most <= low and high <= most and not provisional
    else:
        return "The interval allows more than one outcome."
    return None if is_borne_out else f"The upload states {outcome}, but its interval does not."
