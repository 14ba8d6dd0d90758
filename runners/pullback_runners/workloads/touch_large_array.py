"""A scalar times something read from a large constant array.

    index:       f(p, c) = c[1] * p              df/dp = c[1]
    projection:  f(p, c) = (c . e) * p           df/dp = c . e      e (n,) constant too

Zygote.jl's issue 323: the derivative needs one number of c, so the backward pass should cost the same at every n. An
engine that makes a cotangent of c allocates and fills n numbers for nothing.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt="p",
    quick=grid(n=(100_000,), form=("index", "projection"), dtype=("f8",)),
    standard=grid(n=(1_000, 100_000), form=("index", "projection"), dtype=("f8",)),
    full=grid(n=(1_000, 10_000, 100_000, 1_000_000, 10_000_000), form=("index", "projection"), dtype=("f4", "f8")),
)
def touch_large_array(n: int, form: str) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """c[1] * p, or (c . e) * p, with respect to p."""

    def index(p: Any, c: Any) -> Any:
        return c[1] * p

    def projection(p: Any, c: Any, e: Any) -> Any:
        return (c @ e) * p

    return index if form == "index" else projection


@touch_large_array.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int, form: str) -> Inputs:
    inputs: Inputs = {"p": np.asarray(rng.standard_normal(), dtype=dtype), "c": rng.standard_normal(n).astype(dtype)}
    if form == "projection":
        inputs["e"] = rng.standard_normal(n).astype(dtype)
    return inputs


@touch_large_array.oracle
def _(p: Any, c: Any, e: Any = None, *, n: int, form: str) -> ValueAndGradients:
    # The projection is summed as n products, not by BLAS as in the function.
    slope = c[1] if form == "index" else np.sum(c * e)
    assert c.shape == (n,)  # noqa: S101 - an invariant of our own inputs
    return p * slope, {"p": slope}


@touch_large_array.peer("numpy")
def _(p: Any, c: Any, e: Any = None, *, n: int, form: str) -> ValueAndGradients:  # noqa: ARG001
    slope = c[1] if form == "index" else c @ e
    return slope * p, {"p": slope}
