"""A chain of differential equations by the classical Runge-Kutta method; the last one's end with respect to all rates.

    y_0' = x_0    y_i' = x_i y_(i-1)    y(0) = 0    t from 0 to 2 in `steps` steps

x (n,). y_i is a number times x_0 x_1 ... x_i: the coefficient of z^(i+1) in R(h z)^steps, where h = 2 / steps and
R(z) = 1 + z + z^2/2 + z^3/6 + z^4/24 is what a step makes of exp(z). It is 0 from n > 4 steps on: the method carries
nothing that far, and the gradient is 0 as well. The sizes of these grids stay below, and their rates make y_(n-1) a
number of ordinary size.
"""

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
from numpy.polynomial import polynomial

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

END = 2.0


def solution(steps: int, checkpoint_every: int | None = None) -> Callable[[Any], Any]:
    """The function of x that gives y at the end."""
    step_size = END / steps

    def solve(x: Any) -> Any:
        def slope(y: Any) -> Any:
            return x * np.concatenate([np.ones(1, x.dtype), y[:-1]])

        def step(y: Any, _: Any) -> tuple[Any, None]:
            k1 = slope(y)
            k2 = slope(y + step_size / 2 * k1)
            k3 = slope(y + step_size / 2 * k2)
            k4 = slope(y + step_size * k3)
            return y + step_size / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        y, _ = pb.scan(step, 0 * x, None, length=steps, checkpoint_every=checkpoint_every)
        return y

    return solve


@workload(
    wrt="x",
    quick=grid(n=(20,), steps=(20,)),
    standard=grid(n=(100,), steps=(100,)),
    full=grid(n=(100,), steps=(100,)) + grid(n=(1000,), steps=(400,)),
)
def ode(n: int, steps: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """Last element of a chain of differential equations with respect to its rates."""
    solve = solution(steps)

    def last(x: Any) -> Any:
        return solve(x)[-1]

    return last


@ode.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int, steps: int) -> Inputs:  # noqa: ARG001
    # Against the factorial in the solution, so that no product leaves the range of numbers.
    return {"x": (rng.uniform(0.95, 1.05, n) * np.arange(1, n + 1) / END).astype(dtype)}


@ode.oracle
def _(x: Any, *, n: int, steps: int) -> ValueAndGradients:
    # In logarithms: rates and the coefficient on their own leave the range of numbers.
    scaled = np.array([1.0 / factorial(j) for j in range(5)])
    # R(h z)^steps with z measured in units in which its coefficients are near 1.
    unit = n / END
    step = scaled * (END / steps * unit) ** np.arange(5)
    power, exponent = np.ones(1), 0.0
    for _ in range(steps):
        power = polynomial.polymul(power, step)[: n + 1]
        exponent += np.log(power.max())
        power /= power.max()
    value = np.exp(np.log(power[n]) + exponent + np.sum(np.log(x)) - n * np.log(unit))
    return value, {"x": value / x}
