"""A plain recurrent layer over a sequence, under a quadratic loss.

    h_t = tanh(Wi x_t + Wh h_(t-1) + b)     L(params, x) = sum over t of |h_t|**2     h_0 = 0

x (steps, batch, hidden); as many inputs as hidden units. x is a constant. The parameters are one block or separate
arrays, with or without b.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.recurrent_parameters import (
    accumulate_product,
    arrays_like,
    draw_parameters,
    write_products,
)
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

FORMS = ("blocked", "separate")


@workload(
    wrt="params",
    quick=grid(steps=(10,), batch=(4,), hidden=(16,), form=FORMS[:1], bias=("with",), dtype=("f4",)),
    standard=grid(steps=(50,), batch=(32,), hidden=(64,), form=FORMS, bias=("with",), dtype=("f4",)),
    full=grid(steps=(50,), batch=(1, 32), hidden=(32, 64, 256), form=FORMS, bias=("with", "without"), dtype=("f4",))
    + grid(steps=(50,), batch=(32,), hidden=(64,), form=FORMS, bias=("with",), dtype=("f8",)),
)
def rnn(steps: int, batch: int, hidden: int, form: str = "blocked", bias: str = "with") -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(rnn(params, x)**2) with respect to all parameters."""

    def loss(params: Any, x: Any) -> Any:
        return np.sum(pb.nn.rnn(params, x) ** 2)

    return loss


@rnn.inputs
def _(
    rng: np.random.Generator,
    dtype: np.dtype[Any],
    steps: int,
    batch: int,
    hidden: int,
    form: str = "blocked",
    bias: str = "with",
) -> Inputs:
    params = draw_parameters(pb.nn.rnn_block, rng, dtype, hidden, form, bias)
    return {"params": params, "x": rng.standard_normal((steps, batch, hidden)).astype(dtype)}


@rnn.oracle
def _(params: Any, x: Any, *, steps: int, batch: int, hidden: int, **_: str) -> ValueAndGradients:
    # Step by step, each with its own weight gradients.
    wi, wh, b = params["Wi"], params["Wh"], params.get("b", 0.0)
    states = np.zeros((steps + 1, batch, hidden))
    for t in range(steps):
        states[t + 1] = np.tanh(x[t] @ wi.T + states[t] @ wh.T + b)
    gradient = arrays_like(params, np.zeros_like)
    h_bar = np.zeros((batch, hidden))
    for t in range(steps, 0, -1):
        z_bar = (h_bar + 2 * states[t]) * (1 - states[t] ** 2)
        accumulate_product(gradient, z_bar, x[t - 1], states[t - 1])
        h_bar = z_bar @ wh
    return np.sum(states**2), {"params": gradient}


@rnn.peer("numpy")
def _(params: Any, x: Any, *, steps: int, batch: int, hidden: int, **_: str) -> ValueAndGradients:
    # The product with x before the loop for all steps, and one product for each weight gradient after it.
    wi, wh = params["Wi"], params["Wh"]
    flat = (steps * batch, hidden)
    z = (x.reshape(flat) @ wi.T).reshape(steps, batch, hidden)
    if "b" in params:
        z += params["b"]
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
    gradient = arrays_like(params, np.empty_like)
    write_products(gradient, z_bar.reshape(flat), x.reshape(flat), states[:-1].reshape(flat))
    return value, {"params": gradient}
