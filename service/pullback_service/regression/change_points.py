"""The evidence that a series has two levels, for every place at which the second may begin.

The statistic is the likelihood ratio of one level against two in normal noise whose neighbours correlate (generalised least
squares after whitening), with the scale unknown: `(v + 1) / 2 * log(1 + t^2 / v)`. A side that scatters more than the noise
speaks more quietly, as in Welch's test.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from pullback_service.regression.residuals import Noise, Values

BORROWED: Final = 4.0
"""Observations that the noise of the series counts for beside the scatter of one side."""

NEAR: Final = 32
"""Observations around a place by which it is seen whether they scatter more than the rest."""
BY_CHANCE: Final = 1.3


@dataclass(frozen=True, slots=True)
class Split:
    """The evidence of two levels for each place (natural log of the likelihood ratio); sizes of the steps, their errors."""

    evidence: Values
    size: Values
    error: Values


def split(values: Values, noise: Noise, weights: Values | None) -> Split:
    """The split of clipped values before each of the places 1 to n-1, along the last axis."""
    n = values.shape[-1]
    rho = noise.correlation
    x = values - values.mean(axis=-1, keepdims=True)
    w = np.ones(n) if weights is None else weights
    y = x.copy()
    y[..., 1:] -= rho * x[..., :-1]
    y[..., 0] *= np.sqrt(1 - rho * rho)
    slope = 1 - rho

    wt = w[..., 1:]
    behind = _tails(wt) * slope * slope  # of the places 1 to n-1: what follows each of them, itself included
    whole = behind[..., :1] + w[..., :1] * (1 - rho * rho)
    wy = wt * y[..., 1:]
    moments = _tails(wy) * slope
    whole_moment = moments[..., :1] + w[..., :1] * np.sqrt(1 - rho * rho) * y[..., :1]
    cross = behind + rho * slope * wt
    square = behind + wt * (1 - slope * slope)
    information = square - cross * cross / whole
    moment = moments + rho * wy - cross * whole_moment / whole
    size = moment / information

    # How much each side scatters, where that is more than the noise.
    wx = w * x
    right_n = _tails(wt)
    total_n = w.sum(axis=-1, keepdims=True)
    left_n = total_n - right_n
    right = _tails(wx[..., 1:])
    left = wx.sum(axis=-1, keepdims=True) - right
    squares = wx * x
    right_squares = _tails(squares[..., 1:])
    left_squares = squares.sum(axis=-1, keepdims=True) - right_squares
    right_count = np.arange(n - 1, 0, -1.0)
    left_count = n - right_count
    usual = noise.variance * _loudness(x)
    right_variance = _side(usual, right_squares - right * right / right_n, right_count)
    left_variance = _side(usual, left_squares - left * left / left_n, left_count)
    even = noise.variance * (1 / left_n + 1 / right_n)
    scatter = np.minimum(even / (left_variance / left_n + right_variance / right_n), 1.0)

    variance = noise.variance * (1 - rho * rho) / scatter
    squared = size * size * information / variance
    freedom = max(noise.weight, 1.0)
    evidence = (freedom + 1) / 2 * np.log1p(squared / freedom)
    return Split(evidence, size, np.sqrt(variance / information))


def _side(usual: Values, squares: Values, count: Values) -> Values:
    return np.asarray((BORROWED * usual + squares) / (BORROWED + count - 1))


def _loudness(x: Values) -> Values:
    """The ratio of the variance around each place to that of the whole, by differences of neighbours; 1 where that is chance."""
    squares = np.diff(x, axis=-1) ** 2
    mean = squares.mean(axis=-1, keepdims=True)
    n = squares.shape[-1]
    if n < NEAR or not mean.all():
        return np.ones_like(squares)
    sums = np.zeros((*squares.shape[:-1], n + 1))
    np.cumsum(np.minimum(squares, 4 * mean), axis=-1, out=sums[..., 1:])  # so that a step itself is not loud
    first = np.maximum(np.arange(n) - NEAR // 2, 0)
    last = np.minimum(np.arange(n) + NEAR // 2, n)
    near = (sums[..., last] - sums[..., first]) / (last - first)
    return np.asarray(np.maximum(near / (mean * BY_CHANCE), 1.0))


def _tails(values: Values) -> Values:
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
