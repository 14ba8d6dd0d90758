"""Noise of known kinds, with standard deviation 1 unless its name says otherwise."""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Final, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Values: TypeAlias = NDArray[np.float64]
Noise: TypeAlias = Callable[[Generator, int], Values]


def _normal(rng: Generator, n: int) -> Values:
    return rng.normal(size=n)


def correlated(rho: float) -> Noise:
    """Noise whose neighbours correlate by `rho`."""

    def noise(rng: Generator, n: int) -> Values:
        shocks = rng.normal(size=n) * sqrt(1 - rho * rho)
        values = np.empty(n)
        values[0] = rng.normal()
        for i in range(1, n):
            values[i] = rho * values[i - 1] + shocks[i]
        return values

    return noise


def _student(rng: Generator, n: int) -> Values:
    return np.asarray(rng.standard_t(3, size=n)) / sqrt(3)


def _bimodal(rng: Generator, n: int) -> Values:
    return rng.normal(size=n) + 10 * (rng.random(n) < 0.05)


def _quantised(rng: Generator, n: int) -> Values:
    return np.asarray(2 * np.round(rng.normal(size=n) / 2))


def _outliers(rng: Generator, n: int) -> Values:
    signs = np.asarray(rng.choice([-1.0, 1.0], size=n), dtype=np.float64)
    return np.asarray(rng.normal(size=n) + 10 * signs * (rng.random(n) < 0.02))


def _noisier(factor: float) -> Noise:
    def noise(rng: Generator, n: int) -> Values:
        return rng.normal(size=n) * np.where(np.arange(n) < n // 2, 1.0, factor)

    return noise


def _laplace(rng: Generator, n: int) -> Values:
    return rng.laplace(size=n) / sqrt(2)


def _skewed(rng: Generator, n: int) -> Values:
    return np.asarray(rng.gamma(2.0, size=n) - 2) / sqrt(2)


def _moving_average(rng: Generator, n: int) -> Values:
    shocks = rng.normal(size=n + 1)
    return (shocks[1:] + 0.8 * shocks[:-1]) / sqrt(1.64)


DEVELOPED_WITH: Final[Mapping[str, Noise]] = {
    "iid": _normal,
    "AR(1) .5": correlated(0.5),
    "t3": _student,
    "bimodal 5 %": _bimodal,
    "quantised": _quantised,
    "2 % outliers": _outliers,
    "variance ×3": _noisier(sqrt(3)),
    "sd ×3": _noisier(3.0),
}
"""Kinds that the detector's constants were chosen with; other seeds of them are judged by."""
JUDGED_BY: Final[Mapping[str, Noise]] = {
    "Laplace": _laplace,
    "skewed": _skewed,
    "MA(1) .8": _moving_average,
    "AR(1) .3": correlated(0.3),
}
"""Kinds that were not looked at before the constants stood."""


def series(noise: Noise, seed: tuple[int, ...], *, n: int = 150, spread: float = 0.01) -> Values:
    """A series of times around 100 with noise of a relative standard deviation."""
    return np.asarray(100 * np.exp(spread * noise(np.random.default_rng(seed), n)))


def stepped(values: Values, factor: float, begin: int = 100, end: int | None = None) -> Values:
    """The series with some of its values multiplied."""
    changed = values.copy()
    changed[begin:end] *= factor
    return changed
