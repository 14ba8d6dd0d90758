"""Negative log marginal likelihood of a Gaussian process by Cholesky factorization.

Differentiated by the logarithms of length scale, amplitude and noise, and by the inputs.
"""

from typing import Any

import numpy as np


def arguments(rng: np.random.Generator, points: int) -> tuple[Any, ...]:
    return 0.1 * rng.normal(size=3), rng.normal(size=(points, 3)), rng.normal(size=points)


wrt = (0, 1)


def loss(scales: Any, x: Any, y: Any) -> Any:
    length, amplitude, noise = np.exp(scales)
    squares = np.sum(x**2, axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * x @ x.T
    kernel = amplitude * np.exp(-0.5 * distances / length**2) + (0.1 + noise) * np.eye(len(y))
    root = np.linalg.cholesky(kernel)
    whitened = np.linalg.solve(root, y)
    return 0.5 * whitened @ whitened + np.sum(np.log(np.diag(root)))
