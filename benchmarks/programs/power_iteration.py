"""Largest eigenvalue of a 60 x 60 matrix by 30 rounds of power iteration, normalized by `numpy.linalg.norm`."""

from typing import Any

import numpy as np

SIZE, ROUNDS = 60, 30


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    matrix = rng.normal(size=(SIZE, SIZE))
    return matrix @ matrix.T / SIZE, rng.normal(size=SIZE)


wrt = (0,)


def loss(matrix: Any, start: Any) -> Any:
    v = start / np.linalg.norm(start)
    for _ in range(ROUNDS):
        v = matrix @ v
        v = v / np.linalg.norm(v)
    return v @ matrix @ v
