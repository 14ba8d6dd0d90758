"""Ratios with intervals, of times that took turns. Pure: numbers in, numbers out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 4000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A median, and the bootstrap's interval that holds the true one in 95 of 100 cases."""

    middle: float
    low: float
    high: float


def median_interval(sample: Sequence[float]) -> Interval:
    """Percentile bootstrap of the median (Efron 1979); the same numbers give the same interval.

    Of fewer than six numbers the bootstrap knows nothing that the numbers do not show: their range is given.
    """
    values = np.asarray(sample, dtype=float)
    if values.size == 0:
        raise ValueError("a median needs at least one number, got none")
    middle = float(np.median(values))
    if values.size < 6:
        return Interval(middle, float(values.min()), float(values.max()))
    rng = np.random.default_rng(0)
    medians = np.median(values[rng.integers(0, values.size, (RESAMPLES, values.size))], axis=1)
    low, high = np.quantile(medians, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Interval(middle, float(low), float(high))


def paired_ratio(theirs: Sequence[float], ours: Sequence[float]) -> Interval:
    """The ratio of their time to ours, round by round: above one we are faster."""
    return median_interval([their / our for their, our in zip(theirs, ours, strict=True)])


def fastest(times: dict[str, Sequence[float]]) -> str:
    """The name with the smallest median."""
    return min(times, key=lambda name: float(np.median(times[name])))
