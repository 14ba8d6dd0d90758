"""The place where a charged particle lands between two charges, and the derivative by the position of one: AD in a loop in AD.

Charges at (10, 10 - w) and (10, 0) repel a particle that starts at (0, 8) with velocity (0.75, 0). Euler's steps of 0.1 follow

    x' = v      v' = - grad of p(x), p(x) = sum over charges c of 1 / |x - c|

until it is at or below the axis; from there it goes back along its velocity to the axis, where it is at X(w). L(w) = X^2.
The gradient of p is computed by the inner mode in every step, the derivative of L by the outer one; `mode` names both,
outer first, f forward and r reverse. GradBench's eval then searches the w of least L, which is `best_charge`.
"""

import cmath
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.case import Parameter
from pullback_runners.workloads.descent import differentiated, loop_for, minimum, until_done
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload
from pullback_runners.workloads.saddle import MODES

STEP = 0.1
LIMIT = 512
"""Euler steps in reverse mode; for w between -0.1 and 0.5 it takes 353 to 392."""


def landing(mode: str, limit: int = LIMIT) -> Callable[[Any], Any]:
    """The function of w (1,) that gives L; NaN where the particle was still above the axis after `limit` steps."""
    outer, inner = tuple(mode)
    loop = loop_for(outer, limit)

    def square(w: Any) -> Any:
        def potential(x: Any) -> Any:
            first = (x[0] - 10.0) ** 2 + (x[1] - 10.0 + w[0]) ** 2
            second = (x[0] - 10.0) ** 2 + x[1] ** 2
            return 1 / np.sqrt(first) + 1 / np.sqrt(second)

        pull = differentiated(potential, inner)

        def step(state: Any) -> Any:
            x, v, done = state
            after = x + STEP * v
            lands = np.logical_and(np.logical_not(done), pb.stop_gradient(after[1]) <= 0)
            flies = np.logical_not(np.logical_or(done, lands))
            faster = v - STEP * pull(x)[1]
            return np.where(done, x, after), np.where(flies, faster, v), np.logical_or(done, lands)

        x, v, landed = loop(step, (np.array([0.0, 8.0]), np.array([0.75, 0.0]), np.bool_(False)))
        met = x[0] - x[1] / v[1] * v[0]
        return np.where(landed, met * met, np.nan)

    return square


def best_charge(mode: str, limit: int = LIMIT) -> Callable[[Any], tuple[Any, Any]]:
    """The function of a first w (1,) that gives the best one, and whether no trajectory was cut short."""
    derivative = differentiated(landing(mode, limit), mode[0])

    def search(w: Any) -> tuple[Any, Any]:
        return minimum(derivative, w, until_done)

    return search


@workload(
    wrt="w",
    quick=grid(mode=("rr",)),
    standard=grid(mode=MODES),
    full=grid(mode=MODES),
)
def particle(mode: str) -> Callable[..., Any]:
    """Derivative of a landing point through a loop of gradients, in every pair of modes."""
    return landing(mode)


@particle.derivative("w")
def _(pb: Any, function: Callable[..., Any], mode: str) -> Callable[..., Any]:  # noqa: ARG001
    def nested(w: Any) -> tuple[Any, tuple[Any, ...]]:
        value, gradient = differentiated(function, mode[0])(w)
        return value, (gradient,)

    return nested


@particle.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], mode: Parameter) -> Inputs:  # noqa: ARG001
    return {"w": rng.uniform(-0.1, 0.5, 1).astype(dtype)}


@particle.oracle
def _(w: Any, *, mode: str) -> ValueAndGradients:  # noqa: ARG001
    # The complex step, with the force written out.
    moved = complex(w[0], 1e-30)
    x, y, vx, vy = 0j, 8 + 0j, 0.75 + 0j, 0j
    while True:
        ax = ay = 0j
        for height in (10 - moved, 0):
            far = cmath.sqrt((x - 10) ** 2 + (y - height) ** 2) ** 3
            ax, ay = ax + (x - 10) / far, ay + (y - height) / far
        x, y = x + STEP * vx, y + STEP * vy
        if y.real <= 0:
            met = x - y / vy * vx
            value = met * met
            return value.real, {"w": np.array([value.imag / 1e-30])}
        vx, vy = vx + STEP * ax, vy + STEP * ay
