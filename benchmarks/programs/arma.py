"""Conditional Gaussian likelihood of an ARMA(3, 2) model of 200 observations, residual by residual.

Differentiated by both sets of coefficients, the mean and the logarithm of the scale.
"""

import importlib
from typing import Any

import numpy as np

AR, MA, STEPS = 3, 2, 200


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return np.array([0.5, -0.2, 0.1]), np.array([0.3, 0.1]), np.array([0.2, -0.1]), rng.normal(size=STEPS)


wrt = (0, 1, 2)


def loss(ar: Any, ma: Any, level: Any, series: Any) -> Any:
    mean, log_scale = level
    residuals = [0.0] * MA
    for t in range(AR, STEPS):
        residual = series[t] - mean
        for lag in range(AR):
            residual = residual - ar[lag] * (series[t - 1 - lag] - mean)
        for lag in range(MA):
            residual = residual - ma[lag] * residuals[-1 - lag]
        residuals.append(residual)
    squares = sum(residual**2 for residual in residuals[MA:])
    return 0.5 * squares * np.exp(-2 * log_scale) + (STEPS - AR) * log_scale


def jax_loss(ar: Any, ma: Any, level: Any, series: Any) -> Any:
    """The loss by `scan`, since XLA takes more than ten minutes for the straight code."""
    lax = importlib.import_module("jax.lax")
    mean, log_scale = level
    centered = series - mean
    driven = centered[AR:] - sum(ar[lag] * centered[AR - 1 - lag : STEPS - 1 - lag] for lag in range(AR))

    def step(latest: Any, value: Any) -> tuple[Any, Any]:
        residual = value - ma @ latest
        return np.concatenate([residual[None], latest[:-1]]), residual

    residuals = lax.scan(step, np.zeros(MA), driven)[1]
    return 0.5 * np.sum(residuals**2) * np.exp(-2 * log_scale) + (STEPS - AR) * log_scale
