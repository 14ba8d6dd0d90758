"""Prices of European call options by Black and Scholes, and their sensitivities summed over a book.

    d1 = (log(s / k) + (r + v**2 / 2) t) / (v sqrt(t))     d2 = d1 - v sqrt(t)
    price = s N(d1) - k exp(-r t) N(d2)                     N(d) = (1 + erf(d / sqrt(2))) / 2        L = sum of prices

Spot s, volatility v and rate r are differentiated, one of each an option; strike k and time t are constants. With n the
density of N:  ds = N(d1) (delta)    dv = s n(d1) sqrt(t) (vega)    dr = k t exp(-r t) N(d2) (rho).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used first: 0.15 s for each timed process

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

ROOT_HALF = float(np.sqrt(0.5))


@workload(
    wrt=("s", "v", "r"),
    quick=grid(n=(1_000,), dtype=("f8",)),
    standard=grid(n=(1_000, 100_000), dtype=("f8",)),
    full=grid(n=(10, 1_000, 100_000, 1_000_000), dtype=("f4", "f8")),
)
def black_scholes(n: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """The sum of the prices of n call options with respect to spot, volatility and rate."""

    def total(s: Any, v: Any, r: Any, k: Any, t: Any) -> Any:
        spread = v * np.sqrt(t)
        d1 = (np.log(s / k) + (r + 0.5 * v**2) * t) / spread
        d2 = d1 - spread
        below1, below2 = (0.5 * (1 + pb.scipy.special.erf(d * ROOT_HALF)) for d in (d1, d2))
        return np.sum(s * below1 - k * np.exp(-r * t) * below2)

    return total


@black_scholes.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Inputs:
    return {
        "s": rng.uniform(80.0, 120.0, n).astype(dtype),
        "v": rng.uniform(0.1, 0.5, n).astype(dtype),
        "r": rng.uniform(0.01, 0.05, n).astype(dtype),
        "k": rng.uniform(80.0, 120.0, n).astype(dtype),
        "t": rng.uniform(0.2, 2.0, n).astype(dtype),
    }


@black_scholes.oracle
@black_scholes.peer("numpy")
def _(s: Any, v: Any, r: Any, k: Any, t: Any, *, n: int) -> ValueAndGradients:  # noqa: ARG001
    # The greeks as books have them: the derivatives by d1 and d2 cancel.
    root = np.sqrt(t)
    spread = v * root
    d1 = np.log(s / k)
    d1 += (r + 0.5 * v * v) * t
    d1 /= spread
    discounted = k * np.exp(-r * t)
    delta, below2 = scipy.special.ndtr(d1), scipy.special.ndtr(d1 - spread)
    density = np.exp(-0.5 * d1 * d1)
    density *= float(1 / np.sqrt(2 * np.pi))
    discounted *= below2
    value = np.dot(s, delta) - np.sum(discounted)
    discounted *= t
    return value, {"s": delta, "v": s * density * root, "r": discounted}
