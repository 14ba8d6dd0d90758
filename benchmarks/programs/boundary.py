"""Reaction and diffusion in a 48 x 48 square, 40 explicit steps; the walls are set by assignment after each step.

The left wall is held at given temperatures, the others are insulated. Differentiated by the initial state and the left wall.
"""

from typing import Any

import numpy as np

SIDE, STEPS, RATE = 48, 40, 0.2


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.uniform(size=(SIDE, SIDE)), rng.uniform(size=SIDE)


wrt = (0, 1)


def loss(initial: Any, left: Any) -> Any:
    u = initial.copy()
    for _ in range(STEPS):
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        inside = u[1:-1, 1:-1]
        u[1:-1, 1:-1] = inside + RATE * (around - 4 * inside) + 0.05 * inside * (1 - inside)
        u[0, :] = u[1, :]
        u[-1, :] = u[-2, :]
        u[:, -1] = u[:, -2]
        u[:, 0] = left
    return np.sum(u**2)


def jax_loss(initial: Any, left: Any) -> Any:
    u = initial
    for _ in range(STEPS):
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        inside = u[1:-1, 1:-1]
        u = u.at[1:-1, 1:-1].set(inside + RATE * (around - 4 * inside) + 0.05 * inside * (1 - inside))
        u = u.at[0, :].set(u[1, :])
        u = u.at[-1, :].set(u[-2, :])
        u = u.at[:, -1].set(u[:, -2])
        u = u.at[:, 0].set(left)
    return np.sum(u**2)
