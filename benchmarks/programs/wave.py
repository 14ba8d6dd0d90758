"""Wave equation on 200 points with fixed ends, 60 leapfrog steps; the ends are joined on by `concatenate`.

Differentiated by the initial displacement and by the speed at each point.
"""

from typing import Any

import numpy as np

POINTS, STEPS = 200, 60


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return np.sin(np.linspace(0, 3 * np.pi, POINTS)), rng.uniform(0.3, 0.6, size=POINTS - 2)


wrt = (0, 1)


def loss(displacement: Any, speed: Any) -> Any:
    before, now = displacement, displacement
    for _ in range(STEPS):
        curvature = now[2:] - 2 * now[1:-1] + now[:-2]
        inside = 2 * now[1:-1] - before[1:-1] + speed**2 * curvature
        before, now = now, np.concatenate([now[:1], inside, now[-1:]])
    return np.sum(now**2)
