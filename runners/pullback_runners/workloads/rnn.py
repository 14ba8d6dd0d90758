"""A plain recurrent layer over a sequence, under a quadratic loss; its parameters are one block.

    h_t = tanh(Wi x_t + Wh h_(t-1) + b)     L(params, x) = sum over t of |h_t|**2     h_0 = 0

x (steps, batch, hidden); as many inputs as hidden units. x is a constant.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Differentiated, Inputs, workload


@workload(wrt="params")
def rnn(steps: int, batch: int, hidden: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(rnn(params, x)**2) with respect to the block of all parameters."""

    def loss(params: Any, x: Any) -> Any:
        return np.sum(pb.nn.rnn(params, x) ** 2)

    return loss


@rnn.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], steps: int, batch: int, hidden: int) -> Inputs:
    params = pb.nn.rnn_block(hidden, hidden, dtype=dtype, init=pb.nn.glorot_uniform(rng))
    params.b = (0.1 * rng.standard_normal(hidden)).astype(dtype)
    return {"params": params, "x": rng.standard_normal((steps, batch, hidden)).astype(dtype)}


@rnn.oracle
def _(params: Any, x: Any, *, steps: int, batch: int, hidden: int) -> Differentiated:
    # Step by step, each with its own weight gradients.
    wi, wh, b = params.Wi, params.Wh, params.b
    states = np.zeros((steps + 1, batch, hidden))
    for t in range(steps):
        states[t + 1] = np.tanh(x[t] @ wi.T + states[t] @ wh.T + b)
    gradient = params.map(np.zeros_like)
    h_bar = np.zeros((batch, hidden))
    for t in range(steps, 0, -1):
        z_bar = (h_bar + 2 * states[t]) * (1 - states[t] ** 2)
        gradient.Wi += z_bar.T @ x[t - 1]
        gradient.Wh += z_bar.T @ states[t - 1]
        gradient.b += z_bar.sum(0)
        h_bar = z_bar @ wh
    return np.sum(states**2), {"params": gradient}


@rnn.peer("numpy")
def _(params: Any, x: Any, *, steps: int, batch: int, hidden: int) -> Differentiated:
    # The product with x before the loop for all steps, and one product for each weight gradient after it.
    wi, wh = params.Wi, params.Wh
    flat = (steps * batch, hidden)
    z = (x.reshape(flat) @ wi.T).reshape(steps, batch, hidden)
    z += params.b
    states = np.zeros((steps + 1, batch, hidden), x.dtype)
    for t in range(steps):
        z[t] += states[t] @ wh.T
        np.tanh(z[t], out=states[t + 1])
    h = states[1:].reshape(flat)
    value = np.vdot(h, h)
    z_bar = np.multiply(states[1:], 2, out=z)
    slopes = 1 - states[1:] ** 2
    for t in range(steps - 1, -1, -1):
        if t + 1 < steps:
            z_bar[t] += z_bar[t + 1] @ wh
        z_bar[t] *= slopes[t]
    rows = z_bar.reshape(flat)
    gradient = pb.Block(
        {"Wi": rows.T @ x.reshape(flat), "Wh": rows.T @ states[:-1].reshape(flat), "b": rows.sum(0)}, x.dtype
    )
    return value, {"params": gradient}
