"""A polynomial whose n coefficients are read one at a time.

    f(c, x) = c[0] + x (c[1] + x (c[2] + … + x c[n-1]))      df/dc[k] = x**k

Zygote.jl's issues 323 and 644: an engine that answers each read with an array of n zeros and one number allocates n**2
numbers. Reading n numbers should cost n in reverse too, in one array.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt="c",
    quick=grid(n=(100,), dtype=("f8",)),
    standard=grid(n=(100, 1_000), dtype=("f8",)),
    full=grid(n=(10, 100, 300, 1_000), dtype=("f4", "f8")),
)
def scalar_reads(n: int) -> Callable[..., Any]:
    """Horner's rule over n coefficients read one by one, with respect to the coefficients."""

    def polynomial(c: Any, x: Any) -> Any:
        y = c[n - 1]
        for k in range(n - 2, -1, -1):
            y = y * x + c[k]
        return y

    return polynomial


@scalar_reads.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Inputs:
    # So near to one that the last power still counts: x**n stays above a tenth.
    return {
        "c": rng.standard_normal(n).astype(dtype),
        "x": np.asarray(1 - rng.uniform(0.5, 1.0) / n, dtype=dtype),
    }


@scalar_reads.oracle
@scalar_reads.peer("numpy")
def _(c: Any, x: Any, *, n: int) -> ValueAndGradients:
    powers = np.ones(n, c.dtype)
    np.cumprod(np.full(n - 1, x), out=powers[1:])
    return np.dot(c, powers), {"c": powers}
