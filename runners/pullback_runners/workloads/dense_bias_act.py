"""A dense layer with bias and activation under a quadratic loss.

    L(w, x, b) = sum(y**2)    y = act(z)    z = w @ x + b      w (n, n), x (n, n) one column a sample, b (n,)

Its gradients, with z_bar = 2 y * act'(z):

    w_bar = z_bar @ x.T       x_bar = w.T @ z_bar              b_bar = z_bar summed over the samples

The layer of NNlib.jl's pull request 346: six arrays when every step keeps its own, three when the activation overwrites
the product and its derivative is read from the output. n = 100 in single precision is the size reported there.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.activations import activated, loss_and_slope, slope
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt=("w", "x", "b"),
    quick=grid(n=(32, 100), act=("tanh",), dtype=("f4",)),
    standard=grid(n=(32, 100, 256), act=("tanh", "relu"), dtype=("f4",)),
    full=grid(n=(32, 100, 512), act=("tanh", "relu", "sigmoid", "softplus", "gelu", "identity"), dtype=("f4", "f8"))
    + grid(n=(256,), act=("tanh", "relu"), dtype=("f4",))
    + grid(n=(2048,), act=("tanh",), dtype=("f4",)),
)
def dense_bias_act(n: int, act: str) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(act(w @ x + b)**2) with respect to w, x and b."""

    def loss(w: Any, x: Any, b: Any) -> Any:
        return np.sum(pb.nn.dense_bias_act(w, x, b, act=act) ** 2)

    return loss


@dense_bias_act.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int, act: str) -> Inputs:  # noqa: ARG001
    # w scaled by 1/sqrt(n) keeps z near unit variance at every n, away from the saturation of tanh.
    return {
        "w": (rng.standard_normal((n, n)) / np.sqrt(n)).astype(dtype),
        "x": rng.standard_normal((n, n)).astype(dtype),
        "b": rng.standard_normal(n).astype(dtype),
    }


@dense_bias_act.oracle
def _(w: Any, x: Any, b: Any, *, n: int, act: str) -> ValueAndGradients:  # noqa: ARG001
    z = w @ x + b[:, None]
    y = activated(act, z)
    z_bar = 2.0 * y * slope(act, z)
    return np.sum(y**2), {"w": z_bar @ x.T, "x": w.T @ z_bar, "b": z_bar.sum(axis=1)}


@dense_bias_act.peer("numpy")
def _(w: Any, x: Any, b: Any, *, n: int, act: str) -> ValueAndGradients:  # noqa: ARG001
    z = w @ x
    z += b[:, None]
    value, z_bar = loss_and_slope(act, z)
    return value, {"w": z_bar @ x.T, "x": w.T @ z_bar, "b": z_bar.sum(axis=1)}
