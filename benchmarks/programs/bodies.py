"""Twenty bodies under softened gravity, 20 steps of velocity Verlet in a `while` loop.

Differentiated by initial positions and velocities.
"""

from typing import Any

import numpy as np

BODIES, STEP, END = 20, 0.01, 0.2


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.normal(size=(BODIES, 3)), 0.1 * rng.normal(size=(BODIES, 3)), rng.uniform(0.5, 1.5, size=BODIES)


wrt = (0, 1)


def accelerations(positions: Any, masses: Any) -> Any:
    apart = positions[None, :, :] - positions[:, None, :]
    distances = np.sum(apart**2, axis=-1) + 0.01
    return np.sum(masses[None, :, None] * apart / (distances * np.sqrt(distances))[:, :, None], axis=1)


def loss(positions: Any, velocities: Any, masses: Any) -> Any:
    time, acceleration = 0.0, accelerations(positions, masses)
    while time < END - STEP / 2:
        positions = positions + STEP * velocities + 0.5 * STEP**2 * acceleration
        before, acceleration = acceleration, accelerations(positions, masses)
        velocities = velocities + 0.5 * STEP * (before + acceleration)
        time += STEP
    return np.sum(positions**2)
