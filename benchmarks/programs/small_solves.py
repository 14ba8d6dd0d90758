"""Weighted least squares at 2000 points at once: batched 3 x 3 normal equations, solved together.

Differentiated by the weights and by the observations.
"""

from typing import Any

import numpy as np

BATCH, ROWS = 2000, 5


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    design = rng.normal(size=(BATCH, ROWS, 3))
    return rng.uniform(0.5, 1.5, size=(BATCH, ROWS)), rng.normal(size=(BATCH, ROWS)), design


wrt = (0, 1)


def loss(weights: Any, observed: Any, design: Any) -> Any:
    weighted = design * weights[:, :, None]
    normal = np.swapaxes(design, 1, 2) @ weighted + 0.01 * np.eye(3)
    moments = np.swapaxes(weighted, 1, 2) @ observed[:, :, None]
    solution = np.linalg.solve(normal, moments)
    residual = observed - (design @ solution)[:, :, 0]
    return np.sum(weights * residual**2) + np.sum(solution**2)
