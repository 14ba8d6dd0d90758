"""Polar factor of a 48 x 48 matrix by 12 rounds of Newton and Schulz, compared with a target rotation."""

from typing import Any

import numpy as np

SIZE, ROUNDS = 48, 12


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    matrix = np.eye(SIZE) + 0.2 * rng.normal(size=(SIZE, SIZE)) / SIZE**0.5
    return matrix, np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]


wrt = (0,)


def loss(matrix: Any, target: Any) -> Any:
    x = matrix / np.sqrt(np.sum(matrix**2)) * 4.0
    for _ in range(ROUNDS):
        x = 1.5 * x - 0.5 * x @ x.T @ x
    return np.sum((x - target) ** 2)
