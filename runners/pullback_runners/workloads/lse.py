"""log(sum(exp(x))), computed without overflow; the gradient is softmax(x).

x (n,) is uniform in [0, 1], so that every element of the gradient is close to 1/n: absolute tolerances say nothing here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used first: 0.15 s for each timed process

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt="x",
    quick=grid(n=(2500,)),
    standard=grid(n=(2500, 40_000)),
    full=grid(n=(2500, 40_000, 1_280_000)),
)
def lse(n: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """log(sum(exp(x))) with respect to x."""

    def log_sum_exp(x: Any) -> Any:
        return pb.nn.logsumexp(x, axis=0)

    return log_sum_exp


@lse.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Inputs:
    return {"x": rng.uniform(size=n).astype(dtype)}


@lse.oracle
def _(x: Any, **_: int) -> ValueAndGradients:
    return np.log(np.sum(np.exp(x))), {"x": scipy.special.softmax(x)}


@lse.peer("numpy")
def _(x: Any, *, n: int) -> ValueAndGradients:  # noqa: ARG001
    highest = x.max()
    shares = np.exp(x - highest)
    total = shares.sum()
    shares /= total
    return highest + np.log(total), {"x": shares}
