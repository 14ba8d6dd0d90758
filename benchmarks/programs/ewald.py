"""Electrostatic energy of 40 charges in a periodic box by Ewald summation; differentiated by positions and charges."""

from typing import Any

import numpy as np
from scipy.special import erfc

CHARGES, BOX, SPLITTING, REACH = 40, 4.0, 1.2, 4
WAVES = np.array(
    [
        (i, j, k)
        for i in range(-REACH, REACH + 1)
        for j in range(-REACH, REACH + 1)
        for k in range(-REACH, REACH + 1)
        if 0 < i * i + j * j + k * k <= REACH * REACH
    ]
) * (2 * np.pi / BOX)


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    charges = rng.normal(size=CHARGES)
    return BOX * rng.uniform(size=(CHARGES, 3)), charges - charges.mean()


wrt = (0, 1)


def loss(positions: Any, charges: Any) -> Any:
    apart = positions[:, None, :] - positions[None, :, :]
    apart = apart - BOX * np.round(apart / BOX)
    squares = np.sum(apart**2, axis=-1)
    distances = np.sqrt(np.where(squares > 0, squares, 1.0))
    pairs = np.where(squares > 0, erfc(SPLITTING * distances) / distances, 0.0)
    near = 0.5 * charges @ pairs @ charges
    phases = positions @ WAVES.T
    real, imaginary = charges @ np.cos(phases), charges @ np.sin(phases)
    lengths = np.sum(WAVES**2, axis=1)
    damping = np.exp(-lengths / (4 * SPLITTING**2)) / lengths
    far = 2 * np.pi / BOX**3 * np.sum(damping * (real**2 + imaginary**2))
    return near + far - SPLITTING / np.pi**0.5 * np.sum(charges**2)
