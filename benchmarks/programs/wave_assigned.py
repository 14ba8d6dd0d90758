"""The wave equation of `wave`, each step written into a row of one array by index assignment."""

from typing import Any

import numpy as np
from benchmarks.programs import wave

POINTS, STEPS = wave.POINTS, wave.STEPS
arguments, wrt = wave.arguments, wave.wrt


def loss(displacement: Any, speed: Any) -> Any:
    u = np.zeros_like(displacement, shape=(STEPS + 2, POINTS))
    u[0] = displacement
    u[1] = displacement
    for t in range(1, STEPS + 1):
        u[t + 1, 0] = u[t, 0]
        u[t + 1, -1] = u[t, -1]
        u[t + 1, 1:-1] = 2 * u[t, 1:-1] - u[t - 1, 1:-1] + speed**2 * (u[t, 2:] - 2 * u[t, 1:-1] + u[t, :-2])
    return np.sum(u[-1] ** 2)


def jax_loss(displacement: Any, speed: Any) -> Any:
    before, now = displacement, displacement
    for _ in range(STEPS):
        curvature = now[2:] - 2 * now[1:-1] + now[:-2]
        inside = 2 * now[1:-1] - before[1:-1] + speed**2 * curvature
        before, now = now, now.at[1:-1].set(inside)
    return np.sum(now**2)
