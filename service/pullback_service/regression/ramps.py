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
SHORTEST: Final = 6
"""Observations of the shortest slope that is looked for where no stairs were found."""
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

    def rise(self, n: int) -> Values:
        """The share of the slope that each of `n` observations has climbed."""
        return np.asarray(_rise(n, np.array([self.first]), np.array([self.last]))[0])

    def is_of_commits(self, values: Values, new_commit: Sequence[bool]) -> bool:
        """True if it climbs over several commits and more between them than between reports of one, which is the machine."""
        steps = np.diff(values[self.first - 1 : self.last + 1]) * np.sign(self.size)
        between = np.array(new_commit[self.first : self.last + 1])
        return int(between.sum()) >= SHORTEST and float(steps[between].sum()) >= float(steps.sum()) / 2

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
    first, last, left = _closest(values, *(grid.ravel() for grid in np.meshgrid(begins, ends)))
    if (left - stairs) / (2 * long_run_variance(noise)) > GRANTED * (len(cuts) - 1):
        return None
    return ramp_of(values, first, last, noise)


def slope_within(values: Values, noise: Noise) -> Ramp:
    """The slope between two levels that leaves least of clipped values."""
    n = len(values)
    begins = ends = _grid(1, n - 1)
    for step in (n // FINEST + 1, 1):
        a, b = (grid.ravel() for grid in np.meshgrid(begins, ends))
        apart = b - a >= SHORTEST - 1
        first, last, _ = _closest(values, a[apart], b[apart])
        begins, ends = (_grid(max(at - step, 1), min(at + step, n - 1)) for at in (first, last))
    return ramp_of(values, first, last, noise)


def slope_to_the_end(values: Values, shortest: int, noise: Noise) -> tuple[Ramp, float]:
    """The slope of at least so many observations, on which a series still is, that fits clipped values best, and by how much its sum of squares is below that of the best step."""
    n = len(values)
    begins = _grid(2, n - shortest)
    first, last, left = _closest(values, begins, np.full(len(begins), n - 1))
    x = values - values.mean()
    sums, places = np.cumsum(x)[:-1], np.arange(1, n)
    step = float(x @ x - (sums * sums * n / (places * (n - places))).max())
    return ramp_of(values, first, last, noise), step - left


def _rise(n: int, a: Values, b: Values) -> Values:
    """The share of a slope climbed at each of `n` observations, for slopes that begin and end at given places."""
    return np.asarray(np.clip((np.arange(n) - a[:, None] + 1) / (b - a + 1)[:, None], 0, 1))


def _closest(values: Values, a: Values, b: Values) -> tuple[int, int, float]:
    """The slope among some that leaves least, and the squares that it leaves."""
    a, b = a[b > a], b[b > a]
    basis = _rise(len(values), a, b)
    basis -= basis.mean(axis=1, keepdims=True)
    x = values - values.mean()
    left = float(x @ x) - (basis @ x) ** 2 / (basis * basis).sum(axis=1)
    best = int(left.argmin())
    return int(a[best]), int(b[best]), float(left[best])


def long_run_variance(noise: Noise) -> float:
    """Variance of one observation among many: neighbours that correlate say less."""
    return noise.variance * (1 + noise.correlation) / (1 - noise.correlation)


def ramp_of(values: Values, first: int, last: int, noise: Noise) -> Ramp:
    """The slope between two places that fits values best."""
    rise = _rise(len(values), np.array([first]), np.array([last]))[0]
    rise -= rise.mean()
    spread = float(rise @ rise)
    size = float(rise @ values) / spread
    return Ramp(
        first,
        last,
        size,
        float(np.sqrt(long_run_variance(noise) / spread)),
        size * size * spread / (2 * long_run_variance(noise)) - GRANTED,
    )


def _grid(first: int, last: int) -> Values:
    return np.unique(np.linspace(first, max(last, first), min(max(last - first, 0) + 1, FINEST)).round())
