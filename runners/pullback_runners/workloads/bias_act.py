"""A bias and an activation over an array that is there already, under a quadratic loss.

    L(x, b) = sum(y**2)    y = act(z)    z = x + b      x (n, n) one column a sample, b (n,)

Its gradients, with z_bar = 2 y * act'(z):

    x_bar = z_bar          b_bar = z_bar summed over the samples

What is left of `dense_bias_act` without its product (NNlib.jl's pull request 457): memory is all there is to save. `gelu`
has a derivative that cannot be read from its output, so its input must be kept beside it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.activations import activated, loss_and_slope, slope
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt=("x", "b"),
    quick=grid(n=(100,), act=("tanh",), dtype=("f4",)),
    standard=grid(n=(100, 1000), act=("tanh", "relu", "gelu"), dtype=("f4",)),
    full=grid(n=(10, 100, 1000, 3000), act=("tanh", "relu", "sigmoid", "softplus", "gelu"), dtype=("f4", "f8")),
)
def bias_act(n: int, act: str) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(act(x + b)**2) with respect to x and b."""

    def loss(x: Any, b: Any) -> Any:
        return np.sum(pb.nn.bias_act(act, x, b[:, None]) ** 2)

    return loss


@bias_act.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int, act: str) -> Inputs:  # noqa: ARG001
    return {"x": rng.standard_normal((n, n)).astype(dtype), "b": rng.standard_normal(n).astype(dtype)}


@bias_act.oracle
def _(x: Any, b: Any, *, n: int, act: str) -> ValueAndGradients:  # noqa: ARG001
    z = x + b[:, None]
    y = activated(act, z)
    z_bar = 2.0 * y * slope(act, z)
    return np.sum(y**2), {"x": z_bar, "b": z_bar.sum(axis=1)}


@bias_act.peer("numpy")
def _(x: Any, b: Any, *, n: int, act: str) -> ValueAndGradients:  # noqa: ARG001
    value, z_bar = loss_and_slope(act, x + b[:, None])
    return value, {"x": z_bar, "b": z_bar.sum(axis=1)}
