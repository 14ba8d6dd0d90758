"""From slices to a ratio with an interval. Pure: numbers in, numbers out.

A pair of processes gives one number, the interquartile mean of log(variant / baseline) over its slices. The process, not
the slice, is the unit of inference, since memory layout and hash seed are drawn once per process: over groups the
20 % trimmed mean with its Winsorized t interval (Tukey and McLaughlin 1963; Yuen 1974).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TRIM = 0.2
"""Share of groups cut off at either end before the mean."""

QUARTILE = 0.25
"""Share of slices cut off at either end: a preempted slice is wrong by far more than what is looked for."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class RatioEstimate:
    """ln(variant / baseline) with its confidence interval and the number of groups behind it."""

    log_ratio: float
    low: float
    high: float
    n: int


def interquartile_mean(values: Sequence[float]) -> float:
    """Mean of the middle half."""
    from scipy import stats  # noqa: PLC0415 - takes 1.3 s, which a list of cases or a wrong argument need not wait for

    return float(stats.trim_mean(np.asarray(values, dtype=float), QUARTILE))


def pair_log_ratio(variant: Sequence[float], baseline: Sequence[float]) -> float:
    """Log ratio of one pair: slices are paired by their round, so that what both suffered cancels."""
    if len(variant) != len(baseline) or not variant:
        raise ValueError(f"a pair needs as many slices of both, got {len(variant)} and {len(baseline)}")
    return interquartile_mean([math.log(v / b) for v, b in zip(variant, baseline, strict=True)])


def ratio_estimate(pair_log_ratios: Sequence[float]) -> RatioEstimate:
    """Trimmed mean over groups with its Winsorized interval."""
    from scipy import stats  # noqa: PLC0415 - as above

    values = np.asarray(pair_log_ratios, dtype=float)
    if values.size < 2:
        raise ValueError(f"an interval needs at least two pairs, got {values.size}")
    center = float(stats.trim_mean(values, TRIM))
    low, high = stats.mstats.trimmed_mean_ci(values, limits=(TRIM, TRIM), alpha=1 - CONFIDENCE)
    return RatioEstimate(center, float(low), float(high), int(values.size))
