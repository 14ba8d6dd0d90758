"""Drift: many small steps in one direction, which are one slope between two levels and not stairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from pullback_service.regression.changes import NORMAL_95, Change, probability_of
from pullback_service.regression.residuals import Noise, Values

GRANTED: Final = 4.0
"""Evidence, for each step after the first, that a slope may lack against stairs: it says the same in fewer words."""
FINEST: Final = 24
"""Places that are tried for each end of a slope."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """A slope from one level to another: first place off the old level, first place on the new one."""

    first: int
    last: int
    size: float
    error: float
    evidence: float

    def told(self) -> Change:
        """The drift as one change, of which every place on the slope has its share."""
        share = 1 / (self.last - self.first + 1)
        return Change(
            first=self.first,
            last=self.last,
            size=self.size,
            low=self.size - NORMAL_95 * self.error,
            high=self.size + NORMAL_95 * self.error,
            kind="drift",
            probability=probability_of(self.evidence),
            begin=self.first,
            places=(share,) * (self.last - self.first + 1),
        )


def ramp_instead(values: Values, cuts: Sequence[int], noise: Noise) -> Ramp | None:
    """The slope that explains clipped values as well as the stairs that begin at some places; None if stairs do better."""
    n = len(values)
    stairs = sum(
        float(((part := values[a:b]) - part.mean()) @ (part - part.mean())) for a, b in pairwise((0, *cuts, n))
    )
    reach = max(cuts[-1] - cuts[0], 4)
    begins = _grid(max(cuts[0] - reach, 1), cuts[-1])
    ends = _grid(cuts[0] + 1, min(cuts[-1] + reach, n - 1))
    a, b = (grid.ravel() for grid in np.meshgrid(begins, ends))
    a, b = a[b > a], b[b > a]
    basis = np.clip((np.arange(n) - a[:, None] + 1) / (b - a + 1)[:, None], 0, 1)
    basis -= basis.mean(axis=1, keepdims=True)
    x = values - values.mean()
    spread = (basis * basis).sum(axis=1)
    slopes = basis @ x / spread
    left = float(x @ x) - slopes * slopes * spread
    best = int(left.argmin())
    long = noise.variance * (1 + noise.correlation) / (1 - noise.correlation)
    if (left[best] - stairs) / (2 * long) > GRANTED * (len(cuts) - 1):
        return None
    return Ramp(
        int(a[best]),
        int(b[best]),
        float(slopes[best]),
        float(np.sqrt(long / spread[best])),
        (float(x @ x) - left[best]) / (2 * long) - GRANTED,
    )


def _grid(first: int, last: int) -> Values:
    return np.unique(np.linspace(first, max(last, first), min(max(last - first, 0) + 1, FINEST)).round())
