"""A polynomial of degree 9 over an array, of whose ten coefficients one is wanted.

    f(x, c0 ... c9) = sum over x of (c0 + c1 x + c2 x**2 + ... + c9 x**9), evaluated by Horner's rule
    df/dc2 = sum(x**2)

Zygote.jl's issue 323: one partial derivative is needed and eleven arguments are broadcast. An engine that follows all of
them does eleven times the work; knowing which argument is active leaves one pass over x.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

DEGREE = 9


@workload(
    wrt="c2",
    quick=grid(n=(1_000,), dtype=("f8",)),
    standard=grid(n=(1_000, 100_000), dtype=("f8",)),
    full=grid(n=(100, 1_000, 100_000, 10_000_000), dtype=("f4", "f8")),
)
def poly9_broadcast(n: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(c0 + c1 x + ... + c9 x**9) with respect to c2."""

    # Eleven arguments, as in the issue: to a broadcast every coefficient is an operand of its own.
    def total(x: Any, c0: Any, c1: Any, c2: Any, c3: Any, c4: Any, c5: Any, c6: Any, c7: Any, c8: Any, c9: Any) -> Any:
        y = c9 * x + c8
        for c in (c7, c6, c5, c4, c3, c2, c1, c0):
            y = y * x + c
        return np.sum(y)

    return total


@poly9_broadcast.inputs
def draw(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Inputs:
    """Numbers in [-1, 1] and ten coefficients, each an array of no dimensions."""
    coefficients = {f"c{k}": np.asarray(rng.standard_normal(), dtype=dtype) for k in range(DEGREE + 1)}
    return {"x": rng.uniform(-1.0, 1.0, n).astype(dtype), **coefficients}


@poly9_broadcast.oracle
def power_sums(x: Any, *, n: int, **coefficients: Any) -> ValueAndGradients:
    """Value and df/dc2 from the sums of the powers of x."""
    # Power sums instead of Horner's rule: another order of evaluation, the same polynomial.
    sums = [float(n)] + [float(np.sum(x**k)) for k in range(1, DEGREE + 1)]
    value = sum(coefficients[f"c{k}"] * sums[k] for k in range(DEGREE + 1))
    return value, {"c2": sums[2]}


@poly9_broadcast.peer("numpy")
def by_hand(x: Any, *, n: int, **coefficients: Any) -> ValueAndGradients:  # noqa: ARG001
    """Horner's rule in one array, and the sum of squares."""
    y = coefficients["c9"] * x
    y += coefficients["c8"]
    for k in range(DEGREE - 2, -1, -1):
        y *= x
        y += coefficients[f"c{k}"]
    return np.sum(y), {"c2": np.dot(x, x)}
