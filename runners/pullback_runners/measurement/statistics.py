"""Ratio and interval computed from slices. Pure: numbers in, numbers out.

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

PLANNED_GROUPS = 20
"""The planned number of groups; more exist only if the answer was ambiguous before."""

LATER_CONFIDENCE = 0.995
"""Confidence of intervals over more groups: repeating a measurement until it is decisive would be wrong too often."""

FEWEST_KNOWN_BY_THEMSELVES = 6
"""Fewer groups agree by chance too often to tell how far groups scatter."""

EXPECTED_SCATTER = 0.04
"""The scatter of groups on a machine that has time for a few only: 2 to 6 % beside six to sixteen busy processes on two CPUs."""

EXPECTED_WEIGHT = 3
"""The weight of the expected scatter, as a number of groups' distances from their middle: with two groups three quarters."""

FEWEST_TWIN_PAIRS = 12
"""The number of groups with a twin from which the noise between two identical programs is known well enough to be used."""

RESAMPLES = 2000

AGAINST_TWINS = math.sqrt(3 / 4)
"""A factor for the ratio of a process to the mean of two twins: of three processes alike that ratio has the variance 3/2, the ratio
of one twin to the other has 2."""


@dataclass(frozen=True)
class RatioEstimate:
    """ln(variant / baseline) with its confidence interval and the number of groups behind it."""

    log_ratio: float
    low: float
    high: float
    n: int


def interquartile_mean(values: Sequence[float]) -> float:
    """Mean of the middle half."""
    return float(_middle(values, QUARTILE).mean())


def _middle(values: Sequence[float] | np.ndarray, share: float) -> np.ndarray:
    """The values left, in order, when this share is cut off at either end."""
    ordered = np.sort(np.asarray(values, dtype=float))
    cut = int(share * ordered.size)
    return ordered[cut : ordered.size - cut]


def pair_log_ratio(variant: Sequence[float], *baselines: Sequence[float]) -> float:
    """Log ratio of one pair: slices are paired by their round, so that what both suffered cancels.

    Against twins of the baseline it is the mean of the ratios to each, which halves what the baseline's own layout adds to
    the noise. Not the ratio to their mean slice: noise of slices is skewed to the right, a mean of two less so, and the
    middle of the difference would lie below zero by a third of a per cent where nothing differs.
    """
    lengths = [len(slices) for slices in (variant, *baselines)]
    if len(lengths) < 2 or not variant or len(set(lengths)) > 1:
        raise ValueError(f"a pair needs as many slices of both, got {' and '.join(map(str, lengths))}")
    ours = np.log(np.asarray(variant, dtype=float))
    ratios = [interquartile_mean((ours - np.log(np.asarray(slices, dtype=float))).tolist()) for slices in baselines]
    return float(np.mean(ratios))


def ratio_estimate(pair_log_ratios: Sequence[float], confidence: float | None = None) -> RatioEstimate:
    """Trimmed mean over groups with its Winsorized interval, at `CONFIDENCE` over all times that it may be looked at.

    As `scipy.stats.mstats.trimmed_mean_ci` has it; `scipy.stats` takes 1.7 s to import, in which an interrupted run may be
    ended by force. With fewer than `FEWEST_KNOWN_BY_THEMSELVES` their scatter is joined with the expected one (a moderated t
    interval: Smyth 2004), so that two that agree by chance make no narrow interval, nor two that do not an endless one.
    """
    from scipy import special  # noqa: PLC0415 - takes 0.3 s, which a list of cases or a wrong argument need not wait for

    values = np.asarray(pair_log_ratios, dtype=float)
    if values.size < 2:
        raise ValueError(f"an interval needs at least two pairs, got {values.size}")
    if confidence is None:
        confidence = CONFIDENCE if values.size <= PLANNED_GROUPS else LATER_CONFIDENCE
    middle = _middle(values, TRIM)
    center = float(middle.mean())
    winsorized = np.clip(values, middle[0], middle[-1])
    error = float(winsorized.std(ddof=1)) / ((1 - 2 * TRIM) * math.sqrt(values.size))
    freedom = middle.size - 1
    if values.size < FEWEST_KNOWN_BY_THEMSELVES:
        expected = EXPECTED_SCATTER**2 / values.size
        error = math.sqrt((EXPECTED_WEIGHT * expected + freedom * error**2) / (EXPECTED_WEIGHT + freedom))
        freedom += EXPECTED_WEIGHT
    reach = float(special.stdtrit(freedom, (1 + confidence) / 2)) * error
    return RatioEstimate(center, center - reach, center + reach, int(values.size))


def noise_floor(twin_log_ratios: Sequence[float], groups: int) -> float | None:
    """The distance within which a third identical program comes to its twins in so many groups, 19 times of 20; None while unknown.

    The 95th percentile of |trimmed mean| over resamples of what twins measured, each with either sign, since which of two
    twins is the baseline is arbitrary; less by `AGAINST_TWINS`. The same numbers give the same floor: the resampling is seeded.
    """
    if len(twin_log_ratios) < FEWEST_TWIN_PAIRS:
        return None
    rng = np.random.default_rng(0)
    drawn = rng.choice(np.asarray(twin_log_ratios, dtype=float), (RESAMPLES, groups))
    drawn = np.sort(drawn * rng.choice((-1.0, 1.0), drawn.shape), axis=1)
    cut = int(TRIM * groups)
    means = drawn[:, cut : groups - cut].mean(axis=1)
    return float(np.quantile(np.abs(means), CONFIDENCE)) * AGAINST_TWINS
