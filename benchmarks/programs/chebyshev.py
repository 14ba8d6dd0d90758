"""A Chebyshev filter of degree 30 of a 60 x 60 symmetric matrix applied to eight vectors; differentiated by matrix and weights."""

from typing import Any

import numpy as np

SIZE, VECTORS, DEGREE = 60, 8, 30


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    matrix = rng.normal(size=(SIZE, SIZE))
    matrix = (matrix + matrix.T) / (4 * SIZE**0.5)
    return matrix, rng.normal(size=DEGREE + 1) / (1 + np.arange(DEGREE + 1)), rng.normal(size=(SIZE, VECTORS))


wrt = (0, 1)


def loss(matrix: Any, weights: Any, vectors: Any) -> Any:
    before, now = vectors, matrix @ vectors
    total = weights[0] * before + weights[1] * now
    for degree in range(2, DEGREE + 1):
        before, now = now, 2 * matrix @ now - before
        total = total + weights[degree] * now
    return np.sum(total**2)
