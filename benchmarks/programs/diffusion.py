"""Heat equation by implicit Euler steps: 20 solves with one 64 x 64 matrix.

Differentiated by the conductivities between neighbouring cells and by the initial temperatures.
"""

from typing import Any

import numpy as np

CELLS, STEPS = 64, 20


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.uniform(0.5, 1.5, size=CELLS - 1), rng.normal(size=CELLS), rng.normal(size=CELLS)


wrt = (0, 1)


def loss(conductivity: Any, initial: Any, measured: Any) -> Any:
    padded = np.concatenate([np.zeros(1), conductivity, np.zeros(1)])
    matrix = np.diag(1.0 + padded[:-1] + padded[1:]) - np.diag(conductivity, 1) - np.diag(conductivity, -1)
    state = initial
    for _ in range(STEPS):
        state = np.linalg.solve(matrix, state)
    return np.sum((state - measured) ** 2)
