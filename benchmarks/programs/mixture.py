"""Log-likelihood of 1000 points under 25 Gaussians in 10 dimensions, log-sum-exp written with `max`, `exp` and `log`.

Differentiated by logits, means and logarithms of the scales of a triangular root of each precision.
"""

from typing import Any

import numpy as np

DIMENSIONS, COMPONENTS, POINTS = 10, 25, 1000


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    below = np.tril(0.2 * rng.normal(size=(COMPONENTS, DIMENSIONS, DIMENSIONS)), -1)
    return (
        rng.normal(size=COMPONENTS),
        rng.uniform(size=(COMPONENTS, DIMENSIONS)),
        0.3 * rng.normal(size=(COMPONENTS, DIMENSIONS)),
        below,
        rng.normal(size=(POINTS, DIMENSIONS)),
    )


wrt = (0, 1, 2, 3)


def log_sum_exp(x: Any) -> Any:
    highest = np.max(x, axis=-1, keepdims=True)
    return highest[..., 0] + np.log(np.sum(np.exp(x - highest), axis=-1))


def loss(logits: Any, means: Any, log_scales: Any, below: Any, points: Any) -> Any:
    roots = np.exp(log_scales)[:, :, None] * np.eye(DIMENSIONS) + below
    centered = points[:, None, :] - means[None, :, :]
    whitened = np.einsum("kij,nkj->nki", roots, centered)
    exponents = logits + np.sum(log_scales, axis=1) - 0.5 * np.sum(whitened**2, axis=-1)
    return -np.sum(log_sum_exp(exponents)) + len(points) * log_sum_exp(logits)
