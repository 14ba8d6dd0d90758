"""Penalized regression with cubic B-splines: 400 points, 24 coefficients; the basis by the recursion of Cox and de Boor.

Differentiated by the coefficients, the logarithm of the penalty's weight and the places of the points.
"""

from typing import Any

import numpy as np

POINTS, DEGREE, COEFFICIENTS = 400, 3, 24
KNOTS = np.linspace(-DEGREE, COEFFICIENTS, COEFFICIENTS + DEGREE + 1) / (COEFFICIENTS - DEGREE)


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    x = np.sort(rng.uniform(0.01, 0.99, size=POINTS))
    return rng.normal(size=COEFFICIENTS), np.array(-1.0), x, np.sin(6 * x) + 0.1 * rng.normal(size=POINTS)


wrt = (0, 1, 2)


def basis(x: Any) -> Any:
    x = x[:, None]
    values = np.where((x >= KNOTS[:-1]) & (x < KNOTS[1:]), 1.0, 0.0)
    for degree in range(1, DEGREE + 1):
        left = (x - KNOTS[: -degree - 1]) / (KNOTS[degree:-1] - KNOTS[: -degree - 1])
        right = (KNOTS[degree + 1 :] - x) / (KNOTS[degree + 1 :] - KNOTS[1:-degree])
        values = left * values[:, :-1] + right * values[:, 1:]
    return values


def loss(coefficients: Any, log_weight: Any, x: Any, y: Any) -> Any:
    residual = y - basis(x) @ coefficients
    roughness = np.diff(coefficients, n=2)
    return np.mean(residual**2) + np.exp(log_weight) * np.sum(roughness**2)
