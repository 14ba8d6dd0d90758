"""Cost of a linear-quadratic regulator whose gains come from the Riccati recursion: 30 steps, 6 states, 2 controls.

Differentiated by the dynamics, both as matrices.
"""

from typing import Any

import numpy as np

STATES, CONTROLS, STEPS = 6, 2, 30


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    a = np.eye(STATES) + 0.1 * rng.normal(size=(STATES, STATES))
    return a, 0.5 * rng.normal(size=(STATES, CONTROLS)), rng.normal(size=STATES)


wrt = (0, 1)


def loss(a: Any, b: Any, start: Any) -> Any:
    cost, gains = np.eye(STATES), []
    for _ in range(STEPS):
        gain = np.linalg.solve(0.1 * np.eye(CONTROLS) + b.T @ cost @ b, b.T @ cost @ a)
        cost = np.eye(STATES) + a.T @ cost @ (a - b @ gain)
        gains.append(gain)
    state, total = start, 0.0
    for gain in reversed(gains):
        control = -gain @ state
        total = total + state @ state + 0.1 * control @ control
        state = a @ state + b @ control
    return total + state @ state
