"""The noise of a series, learnt from its residuals: scale, correlation of neighbours, and how many observations stray.

Outliers are clipped before anything is summed. The scale is that of clipped values, so that it says what means of clipped
values scatter by whatever the tails are; the outliers themselves are counted, for a run of them must not pass for a level.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

LEAST_SCALE: Final = 0.001
"""Natural log. Where no floor is given a series is taken to scatter by a thousandth until it has shown otherwise."""
CLIP: Final = 2.0
"""Standard deviations from the median of five neighbours at which a value is clipped."""
STRAYS: Final = 4.0
"""Standard deviations from its level at which an observation is counted as an outlier."""
USUAL_CORRELATION: Final = (0.15, 15.0)
"""The correlation of neighbours before a series has shown it, and the number of observations that counts for."""
USUAL_OUTLIERS: Final = (1.0, 30.0)
"""Outliers among so many observations, counted with those of every series."""
LATE: Final = 16
"""The newest observations, whose scatter counts where it is larger than by chance."""
BY_CHANCE: Final = 1.25
REMEMBERED: Final = 30.0
"""Observations that an earlier level's noise counts for at the next level."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise around a level: variance and correlation of neighbours of clipped natural logs, share of outliers."""

    variance: float
    weight: float
    """Observations that the variance rests on."""
    correlation: float = USUAL_CORRELATION[0]
    correlated: float = USUAL_CORRELATION[1]
    """Observations that the correlation rests on."""
    outliers: float = USUAL_OUTLIERS[0]
    observed: float = USUAL_OUTLIERS[1]
    """Observations among which the outliers were counted."""

    @classmethod
    def unknown(cls, floor: float | None, inner: Values | None = None) -> "Noise":
        """Noise before the first observation: the floor, or what the observations' own intervals say."""
        known = 0.0 if inner is None or not len(inner) else float(np.median(inner)) ** 2
        if floor is None:
            return cls(max(LEAST_SCALE**2, known), 4.0 if known else 1.0)
        return cls(max(floor**2, LEAST_SCALE**2 / 100, known), 4.0)

    @property
    def scale(self) -> float:
        """Standard deviation of one observation."""
        return sqrt(self.variance)

    @property
    def shortest_run(self) -> float:
        """Observations in a row that chance would not have made outliers of."""
        return RARE / log(self.observed / self.outliers)

    def learnt_from(
        self, values: Values, raw: Values, weights: Values | None, bounds: Sequence[int], step: float
    ) -> "Noise":
        """This noise and that around the levels between some bounds: clipped values, raw values, the step of quantised ones."""
        levels = [values[a:b] for a, b in pairwise(bounds)]
        count = len(values)
        if weights is None:
            residuals = [level - level.mean() for level in levels]
        else:
            parts = [weights[a:b] for a, b in pairwise(bounds)]
            residuals = [
                (level - np.average(level, weights=w)) * np.sqrt(w) for level, w in zip(levels, parts, strict=True)
            ]
        squares = sum(float(r @ r) for r in residuals)
        variance = (self.weight * self.variance + squares) / (self.weight + max(count - len(levels), 0))
        late = np.concatenate(residuals)[-LATE:]  # a series that became noisier shows it there first
        variance = max(
            variance, (float(late @ late) + LATE / 3 * variance) / (LATE * 4 / 3) / BY_CHANCE, step * step / 12
        )
        products = sum(float(r[1:] @ r[:-1]) for r in residuals)
        correlation = self.correlation
        if squares > 0 and count > 4:
            result = products / squares
            result += (1 + 3 * result) * len(levels) / count  # residuals of short levels correlate less than the noise
            correlation = (self.correlated * self.correlation + count * result) / (self.correlated + count)
        width = STRAYS * sqrt(variance)
        stray = sum(
            int((abs(raw[a:b] - level.mean()) > width).sum())
            for (a, b), level in zip(pairwise(bounds), levels, strict=True)
        )
        return Noise(
            variance=variance,
            weight=self.weight + max(count - len(levels), 0),
            correlation=min(max(correlation, 0.0), 0.9),
            correlated=self.correlated + count,
            outliers=self.outliers + stray,
            observed=self.observed + count,
        )

    def between(self, other: "Noise") -> "Noise":
        """This noise, with variance (on a logarithmic scale) and correlation halfway to those of another."""
        return replace(
            self,
            variance=sqrt(self.variance * other.variance),
            correlation=(self.correlation + other.correlation) / 2,
        )

    def remembered(self) -> "Noise":
        """This noise as the next level begins with it: the scale soon gives way, correlation and tails stay."""
        share = min(1.0, 4 * REMEMBERED / self.observed)
        return Noise(
            variance=self.variance,
            weight=min(self.weight, REMEMBERED),
            correlation=self.correlation,
            correlated=min(self.correlated, 3 * REMEMBERED),
            outliers=self.outliers * share,
            observed=self.observed * share,
        )


RARE: Final = 9.4
"""Natural log of one over the chance at which a run of outliers is none."""


def clipped(values: Values, width: float) -> Values:
    """The values, those further than `width` from the median of themselves and four neighbours brought to that width.

    At both ends the neighbours are fewer: the median is then between two values, and either of them may be it.
    """
    n = values.shape[-1]
    if n < 5:
        return values
    low, high = np.empty_like(values), np.empty_like(values)
    middle = np.sort(np.lib.stride_tricks.sliding_window_view(values, 5, axis=-1), axis=-1)[..., 2]
    low[..., 2:-2] = high[..., 2:-2] = middle
    for at, around in ((0, slice(0, 3)), (n - 1, slice(n - 3, n))):
        low[..., at] = high[..., at] = np.sort(values[..., around], axis=-1)[..., 1]
    for at, around in ((1, slice(0, 4)), (n - 2, slice(n - 4, n))):
        ordered = np.sort(values[..., around], axis=-1)
        low[..., at], high[..., at] = ordered[..., 1], ordered[..., 2]
    return np.minimum(np.maximum(values, low - width), high + width)


def quantum(values: Values) -> float:
    """The smallest difference between two values that differ; 0 if there is none."""
    steps = np.diff(np.unique(values))
    steps = steps[steps > 1e-12]
    return float(steps.min()) if len(steps) else 0.0


def rough_scale(values: Values) -> float:
    """Standard deviation of a series by its differences, which steps hardly touch."""
    if len(values) < 3:
        return 0.0
    differences = np.abs(np.diff(values))
    return float(max(np.median(differences) * 1.4826, np.quantile(differences, 0.8) / 1.2816)) / sqrt(2)


def weights_of(inner: Values | None, variance: float) -> Values | None:
    """Weights of observations whose own standard errors are known, in noise of a variance; None where all count alike.

    What the errors do not explain of the variance lies between the observations and is the same for all of them.
    """
    if inner is None or not inner.any() or np.ptp(inner) == 0:
        return None
    own = inner * inner
    between = max(variance - float(np.median(own)), float(np.median(own)) / 4)
    total = own + between
    return float(np.median(total)) / total
