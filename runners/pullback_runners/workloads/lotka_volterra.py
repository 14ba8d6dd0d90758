"""Predators and prey: a fixed number of steps of the classical Runge-Kutta method, and a loss of where they end.

    u' = a u - b u v      v' = d u v - c v      L = u_T**2 + v_T**2

`rates` holds a, b, c, d and `start` the first u and v. A step is some forty operations on two numbers: what an engine
spends beside them is all that is measured.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

STEP = 0.005


def runge_kutta_step(rates: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """One step from (u, v), in operators alone, so that every engine runs the same lines."""
    a, b, c, d = rates

    def slope(u: Any, v: Any) -> tuple[Any, Any]:
        return a * u - b * (u * v), d * (u * v) - c * v

    u1, v1 = slope(u, v)
    u2, v2 = slope(u + STEP / 2 * u1, v + STEP / 2 * v1)
    u3, v3 = slope(u + STEP / 2 * u2, v + STEP / 2 * v2)
    u4, v4 = slope(u + STEP * u3, v + STEP * v3)
    return u + STEP / 6 * (u1 + 2 * (u2 + u3) + u4), v + STEP / 6 * (v1 + 2 * (v2 + v3) + v4)


@workload(
    wrt=("rates", "start"),
    quick=grid(steps=(100,), dtype=("f8",)),
    standard=grid(steps=(1_000,), dtype=("f8",)),
    full=grid(steps=(100, 1_000, 3_000), dtype=("f8",)) + grid(steps=(100,), dtype=("f4",)),
)
def lotka_volterra(steps: int) -> Callable[..., Any]:
    """The final populations after Runge-Kutta steps, with respect to rates and start."""

    def end(rates: Any, start: Any) -> Any:
        a, b, c, d = rates[0], rates[1], rates[2], rates[3]

        def step(state: Any, _: Any) -> tuple[Any, None]:
            return runge_kutta_step((a, b, c, d), *state), None

        (u, v), _ = pb.scan(step, (start[0], start[1]), None, length=steps)
        return u**2 + v**2

    return end


@lotka_volterra.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], steps: int) -> Inputs:  # noqa: ARG001
    return {
        "rates": (np.array([1.5, 1.0, 3.0, 1.0]) * rng.uniform(0.95, 1.05, 4)).astype(dtype),
        "start": (np.array([1.0, 1.0]) * rng.uniform(0.9, 1.1, 2)).astype(dtype),
    }


@lotka_volterra.oracle
def _(rates: Any, start: Any, *, steps: int) -> ValueAndGradients:
    # The complex step: no subtraction, so the derivative is as exact as the value.
    tiny = 1e-30
    point = [*rates, *start]

    def end(numbers: list[Any]) -> Any:
        u, v = numbers[4:]
        for _ in range(steps):
            u, v = runge_kutta_step(numbers[:4], u, v)
        return u**2 + v**2

    slopes = np.array(
        [
            end([complex(x) + (tiny * 1j if i == moved else 0) for i, x in enumerate(point)]).imag / tiny
            for moved in range(6)
        ]
    )
    return end([float(x) for x in point]), {"rates": slopes[:4], "start": slopes[4:]}


@lotka_volterra.peer("numpy")
def _(rates: Any, start: Any, *, steps: int) -> ValueAndGradients:
    # Python's own numbers, which are faster here than arrays of one; the adjoint of each step written out.
    a, b, c, d = numbers = rates.tolist()
    u, v = start.tolist()
    states = []
    for _ in range(steps):
        states.append((u, v))
        u, v = runge_kutta_step(numbers, u, v)
    value, u_bar, v_bar = u**2 + v**2, 2 * u, 2 * v
    rates_bar = [0.0, 0.0, 0.0, 0.0]

    def pull(u: float, v: float, du_bar: float, dv_bar: float) -> tuple[float, float]:
        """Cotangents of u and v by those of their slopes; those of the rates are added up."""
        product = u * v
        rates_bar[0] += du_bar * u
        rates_bar[1] -= du_bar * product
        rates_bar[2] -= dv_bar * v
        rates_bar[3] += dv_bar * product
        product_bar = dv_bar * d - du_bar * b
        return du_bar * a + product_bar * v, product_bar * u - dv_bar * c

    half = STEP / 2
    for u0, v0 in reversed(states):
        u1, v1 = a * u0 - b * (u0 * v0), d * (u0 * v0) - c * v0
        x2, y2 = u0 + half * u1, v0 + half * v1
        u2, v2 = a * x2 - b * (x2 * y2), d * (x2 * y2) - c * y2
        x3, y3 = u0 + half * u2, v0 + half * v2
        u3, v3 = a * x3 - b * (x3 * y3), d * (x3 * y3) - c * y3
        x4_bar, y4_bar = pull(u0 + STEP * u3, v0 + STEP * v3, STEP / 6 * u_bar, STEP / 6 * v_bar)
        x3_bar, y3_bar = pull(x3, y3, STEP / 3 * u_bar + STEP * x4_bar, STEP / 3 * v_bar + STEP * y4_bar)
        x2_bar, y2_bar = pull(x2, y2, STEP / 3 * u_bar + half * x3_bar, STEP / 3 * v_bar + half * y3_bar)
        x1_bar, y1_bar = pull(u0, v0, STEP / 6 * u_bar + half * x2_bar, STEP / 6 * v_bar + half * y2_bar)
        u_bar += x4_bar + x3_bar + x2_bar + x1_bar
        v_bar += y4_bar + y3_bar + y2_bar + y1_bar
    return value, {"rates": np.array(rates_bar, rates.dtype), "start": np.array([u_bar, v_bar], rates.dtype)}
