"""A long short-term memory over a sequence, under a quadratic loss.

    i, f, o = sigmoid(Wi x_t + Wh h_(t-1) + b)   g = tanh(...)   c_t = f c_(t-1) + i g   h_t = o tanh(c_t)
    L(params, x) = sum over t of |h_t|**2        h_0 = c_0 = 0

x (steps, batch, hidden); as many inputs as hidden units. x is a constant. The parameters are one block or separate
arrays, with or without b.
"""

from collections.abc import Callable, Mapping
from functools import cache
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
    standard=grid(steps=(50,), batch=(1,), hidden=(32,), form=FORMS, bias=("with",), dtype=("f4",))
    + grid(steps=(50,), batch=(32,), hidden=(128,), form=FORMS, bias=("with",), dtype=("f4",)),
    full=grid(steps=(50,), batch=(1, 32), hidden=(32, 128, 512), form=FORMS, bias=("with", "without"), dtype=("f4",))
    + grid(steps=(50,), batch=(32,), hidden=(128,), form=FORMS, bias=("with",), dtype=("f8",)),
)
def lstm(steps: int, batch: int, hidden: int, form: str = "blocked", bias: str = "with") -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(lstm(params, x)**2) with respect to all parameters."""

    def loss(params: Any, x: Any) -> Any:
        h, _ = pb.nn.lstm(params, x)
        return np.sum(h**2)

    return loss


@lstm.inputs
def _(
    rng: np.random.Generator,
    dtype: np.dtype[Any],
    steps: int,
    batch: int,
    hidden: int,
    form: str = "blocked",
    bias: str = "with",
) -> Inputs:
    params = draw_parameters(pb.nn.lstm_block, rng, dtype, hidden, form, bias)
    return {"params": params, "x": rng.standard_normal((steps, batch, hidden)).astype(dtype)}


def _sigmoid(z: Any) -> Any:
    return 0.5 * (1 + np.tanh(0.5 * z))


@lstm.oracle
def _(params: Any, x: Any, *, steps: int, batch: int, hidden: int, **_: str) -> ValueAndGradients:
    # Gate by gate and step by step, each with its own weight gradients.
    weights: Mapping[str, Mapping[str, Any]] = pb.nn.lstm_gates(params)
    gradient = arrays_like(params, np.zeros_like)
    bars = pb.nn.lstm_gates(gradient)
    h, c = (np.zeros((steps + 1, batch, hidden)) for _ in range(2))
    gates: list[dict[str, Any]] = [{}]
    for t in range(steps):
        z = {gate: x[t] @ w["Wi"].T + h[t] @ w["Wh"].T + w.get("b", 0.0) for gate, w in weights.items()}
        gates.append({gate: np.tanh(z[gate]) if gate == "cell" else _sigmoid(z[gate]) for gate in z})
        g = gates[-1]
        c[t + 1] = g["forget"] * c[t] + g["input"] * g["cell"]
        h[t + 1] = g["output"] * np.tanh(c[t + 1])
    h_bar, c_bar = np.zeros((batch, hidden)), np.zeros((batch, hidden))
    for t in range(steps, 0, -1):
        g, squashed = gates[t], np.tanh(c[t])
        h_bar = h_bar + 2 * h[t]
        c_bar = c_bar + h_bar * g["output"] * (1 - squashed**2)
        through = {
            "input": c_bar * g["cell"],
            "forget": c_bar * c[t - 1],
            "cell": c_bar * g["input"],
            "output": h_bar * squashed,
        }
        c_bar, h_bar = c_bar * g["forget"], np.zeros((batch, hidden))
        for gate, bar in through.items():
            z_bar = bar * (1 - g[gate] ** 2 if gate == "cell" else g[gate] * (1 - g[gate]))
            accumulate_product(bars[gate], z_bar, x[t - 1], h[t - 1])
            h_bar += z_bar @ weights[gate]["Wh"]
    return np.sum(h**2), {"params": gradient}


@cache
def _rows(hidden: int) -> dict[str, slice]:
    """The rows of the weights that belong to each gate: found by asking a block whose bias numbers its rows."""
    numbered = pb.nn.lstm_block(1, hidden)
    numbered.b = np.arange(4.0 * hidden)
    starts = {gate: int(views["b"][0]) for gate, views in pb.nn.lstm_gates(numbered).items()}
    return {gate: slice(start, start + hidden) for gate, start in starts.items()}


@lstm.peer("numpy")
def _(params: Any, x: Any, *, steps: int, batch: int, hidden: int, **_: str) -> ValueAndGradients:
    # The product with x before the loop for all steps, all gates at once, and one product for each weight gradient after it.
    wi, wh, rows = params["Wi"], params["Wh"], _rows(hidden)
    flat = x.reshape(steps * batch, hidden)
    gates = (flat @ wi.T).reshape(steps, batch, 4 * hidden)
    if "b" in params:
        gates += params["b"]
    i, f, g, o = (gates[:, :, rows[gate]] for gate in ("input", "forget", "cell", "output"))
    h, c = (np.zeros((steps + 1, batch, hidden), x.dtype) for _ in range(2))
    squashed = np.empty((steps, batch, hidden), x.dtype)
    for t in range(steps):
        z = gates[t]
        z += h[t] @ wh.T
        g[t] = np.tanh(g[t])
        for gate in (i[t], f[t], o[t]):
            np.multiply(gate, 0.5, out=gate)
            np.tanh(gate, out=gate)
            np.add(gate, 1, out=gate)
            np.multiply(gate, 0.5, out=gate)
        np.multiply(f[t], c[t], out=c[t + 1])
        c[t + 1] += i[t] * g[t]
        np.tanh(c[t + 1], out=squashed[t])
        np.multiply(o[t], squashed[t], out=h[t + 1])
    value = np.vdot(h, h)
    z_bar = np.empty_like(gates)
    i_bar, f_bar, g_bar, o_bar = (z_bar[:, :, rows[gate]] for gate in ("input", "forget", "cell", "output"))
    # The slopes of all steps at once; in the loop they are multiplied by what comes back through h and c.
    np.multiply(squashed * o, 1 - o, out=o_bar)
    np.multiply(g * i, 1 - i, out=i_bar)
    np.multiply(c[:-1] * f, 1 - f, out=f_bar)
    np.multiply(i, 1 - g**2, out=g_bar)
    through_h = o * (1 - squashed**2)
    h_bar, c_bar = np.zeros((2, batch, hidden), x.dtype)
    for t in range(steps - 1, -1, -1):
        h_bar = h_bar + 2 * h[t + 1]
        c_bar += h_bar * through_h[t]
        o_bar[t] *= h_bar
        for gate_bar in (i_bar[t], f_bar[t], g_bar[t]):
            np.multiply(gate_bar, c_bar, out=gate_bar)
        c_bar *= f[t]
        h_bar = z_bar[t] @ wh
    gradient = arrays_like(params, np.empty_like)
    write_products(gradient, z_bar.reshape(steps * batch, 4 * hidden), flat, h[:-1].reshape(flat.shape))
    return value, {"params": gradient}
