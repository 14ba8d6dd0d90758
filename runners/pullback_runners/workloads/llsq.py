"""Least squares fit of the sign function by a polynomial, at n points of [-1, 1].

    L(x) = sum over i of (sign(t_i) - sum over j of x_j t_i^j)^2 / 2      t_i = 2 i / (n - 1) - 1,  x (m,)

    x_bar = V.T @ (V @ x - sign(t))      V (n, m), V_ij = t_i^j

The polynomial is evaluated by Horner's scheme at all points at once: m steps on n numbers, V is never formed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt="x",
    quick=grid(n=(128,), m=(32,)),
    standard=grid(n=(1024,), m=(128,)),
    full=grid(n=(16, 1024, 16_392), m=(128,)),
)
def llsq(n: int, m: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """Squared distance of a polynomial from the sign function with respect to its coefficients."""

    def distance(x: Any) -> Any:
        t = points(n).astype(x.dtype)

        def horner(value: Any, coefficient: Any) -> tuple[Any, None]:
            return value * t + coefficient, None

        value, _ = pb.scan(horner, np.zeros(n, x.dtype), x, reverse=True)
        return 0.5 * np.sum((np.sign(t) - value) ** 2)

    return distance


def points(n: int) -> Any:
    """The n points."""
    return np.arange(n) * 2 / (n - 1) - 1


@llsq.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int, m: int) -> Inputs:  # noqa: ARG001
    return {"x": rng.uniform(size=m).astype(dtype)}


@llsq.oracle
def _(x: Any, *, n: int, m: int) -> ValueAndGradients:
    vandermonde = np.vander(points(n), m, increasing=True)
    residual = vandermonde @ x - np.sign(points(n))
    return 0.5 * residual @ residual, {"x": vandermonde.T @ residual}


@llsq.peer("numpy")
def _(x: Any, *, n: int, m: int) -> ValueAndGradients:
    t = points(n).astype(x.dtype)
    powers = np.empty((m, n), x.dtype)
    powers[0] = 1
    for j in range(1, m):
        np.multiply(powers[j - 1], t, out=powers[j])
    residual = x @ powers
    residual -= np.sign(t)
    return x.dtype.type(0.5) * (residual @ residual), {"x": powers @ residual}
