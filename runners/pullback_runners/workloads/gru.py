"""A gated recurrent unit over a sequence, under a quadratic loss; the reset gate acts after the product.

    r, z = sigmoid(Wi x_t + Wh h_(t-1) + b)     n = tanh(Wi x_t + b + r (Wh h_(t-1)))     h_t = (1 - z) n + z h_(t-1)
    L(params, x) = sum over t of |h_t|**2       h_0 = 0

each with its own rows of Wi, Wh and b. x (steps, batch, hidden); as many inputs as hidden units. x is a constant. The
parameters are one block or separate arrays, with or without b.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.recurrent_parameters import arrays_like, draw_parameters
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

FORMS = ("blocked", "separate")


@workload(
    wrt="params",
    quick=grid(steps=(10,), batch=(4,), hidden=(16,), form=FORMS[:1], bias=("with",), dtype=("f4",)),
    standard=grid(steps=(50,), batch=(32,), hidden=(64,), form=FORMS, bias=("with",), dtype=("f4",)),
    full=grid(steps=(50,), batch=(1, 32), hidden=(32, 128, 512), form=FORMS, bias=("with", "without"), dtype=("f4",))
    + grid(steps=(50,), batch=(32,), hidden=(64,), form=FORMS, bias=("with",), dtype=("f8",)),
)
def gru(steps: int, batch: int, hidden: int, form: str, bias: str) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(gru(params, x)**2) with respect to all parameters."""

    def loss(params: Any, x: Any) -> Any:
        return np.sum(pb.nn.gru(params, x) ** 2)

    return loss


@gru.inputs
def _(
    rng: np.random.Generator, dtype: np.dtype[Any], steps: int, batch: int, hidden: int, form: str, bias: str
) -> Inputs:
    params = draw_parameters(pb.nn.gru_block, rng, dtype, hidden, form, bias)
    return {"params": params, "x": rng.standard_normal((steps, batch, hidden)).astype(dtype)}


def _sigmoid(z: Any) -> Any:
    return 0.5 * (1 + np.tanh(0.5 * z))


@gru.oracle
def _(params: Any, x: Any, *, steps: int, batch: int, hidden: int, **_: str) -> ValueAndGradients:
    # Gate by gate and step by step, each with its own weight gradients.
    weights: Mapping[str, Mapping[str, Any]] = pb.nn.gru_gates(params)
    gradient = arrays_like(params, np.zeros_like)
    bars = pb.nn.gru_gates(gradient)
    h = np.zeros((steps + 1, batch, hidden))
    kept: list[tuple[Any, ...]] = []
    for t in range(steps):
        of_x = {gate: x[t] @ w["Wi"].T + w.get("b", 0.0) for gate, w in weights.items()}
        of_h = {gate: h[t] @ w["Wh"].T for gate, w in weights.items()}
        r, z = (_sigmoid(of_x[gate] + of_h[gate]) for gate in ("reset", "update"))
        n = np.tanh(of_x["candidate"] + r * of_h["candidate"])
        h[t + 1] = (1 - z) * n + z * h[t]
        kept.append((r, z, n, of_h["candidate"]))
    h_bar = np.zeros((batch, hidden))
    for t in range(steps - 1, -1, -1):
        r, z, n, product = kept[t]
        h_bar = h_bar + 2 * h[t + 1]
        through = h_bar * (1 - z) * (1 - n**2)
        of_x_bar = {
            "reset": through * product * r * (1 - r),
            "update": h_bar * (h[t] - n) * z * (1 - z),
            "candidate": through,
        }
        of_h_bar = {**of_x_bar, "candidate": through * r}
        h_bar = h_bar * z
        for gate in weights:
            bars[gate]["Wi"][...] += of_x_bar[gate].T @ x[t]
            bars[gate]["Wh"][...] += of_h_bar[gate].T @ h[t]
            if "b" in bars[gate]:
                bars[gate]["b"][...] += of_x_bar[gate].sum(0)
            h_bar = h_bar + of_h_bar[gate] @ weights[gate]["Wh"]
    return np.sum(h**2), {"params": gradient}


@cache
def _rows(hidden: int) -> dict[str, slice]:
    """The rows of the weights that belong to each gate: found by asking a block whose bias numbers its rows."""
    numbered = pb.nn.gru_block(1, hidden)
    numbered.b = np.arange(3.0 * hidden)
    starts = {gate: int(views["b"][0]) for gate, views in pb.nn.gru_gates(numbered).items()}
    return {gate: slice(start, start + hidden) for gate, start in starts.items()}


@gru.peer("numpy")
def _(params: Any, x: Any, *, steps: int, batch: int, hidden: int, **_: str) -> ValueAndGradients:
    # The product with x before the loop for all steps, all gates at once, and one product for each weight gradient after it.
    wi, wh, rows = params["Wi"], params["Wh"], _rows(hidden)
    flat = x.reshape(steps * batch, hidden)
    gates = (flat @ wi.T).reshape(steps, batch, 3 * hidden)
    if "b" in params:
        gates += params["b"]
    r, z, n = (gates[:, :, rows[gate]] for gate in ("reset", "update", "candidate"))
    h = np.zeros((steps + 1, batch, hidden), x.dtype)
    products = np.empty((steps, batch, hidden), x.dtype)
    for t in range(steps):
        of_h = h[t] @ wh.T
        products[t] = of_h[:, rows["candidate"]]
        for gate, name in ((r[t], "reset"), (z[t], "update")):
            np.add(gate, of_h[:, rows[name]], out=gate)
            np.multiply(gate, 0.5, out=gate)
            np.tanh(gate, out=gate)
            np.add(gate, 1, out=gate)
            np.multiply(gate, 0.5, out=gate)
        n[t] += r[t] * products[t]
        np.tanh(n[t], out=n[t])
        np.subtract(h[t], n[t], out=h[t + 1])
        h[t + 1] *= z[t]
        h[t + 1] += n[t]
    value = np.vdot(h, h)
    # The slopes of all steps at once; in the loop they are multiplied by what comes back through h.
    of_x_bar, of_h_bar = np.empty_like(gates), np.empty_like(gates)
    x_bars = {gate: of_x_bar[:, :, rows[gate]] for gate in rows}
    h_bars = {gate: of_h_bar[:, :, rows[gate]] for gate in rows}
    through = (1 - z) * (1 - n * n)
    x_bars["candidate"][...] = through
    x_bars["reset"][...] = through * products * r * (1 - r)
    x_bars["update"][...] = (h[:-1] - n) * z * (1 - z)
    h_bars["candidate"][...] = through * r
    h_bars["reset"][...], h_bars["update"][...] = x_bars["reset"], x_bars["update"]
    h_bar = np.zeros((batch, hidden), x.dtype)
    for t in range(steps - 1, -1, -1):
        h_bar = h_bar + 2 * h[t + 1]
        for bars in (x_bars, h_bars):
            for bar in bars.values():
                bar[t] *= h_bar
        h_bar = h_bar * z[t] + of_h_bar[t] @ wh
    gradient = arrays_like(params, np.empty_like)
    x_rows, h_rows = (bar.reshape(steps * batch, 3 * hidden) for bar in (of_x_bar, of_h_bar))
    np.matmul(x_rows.T, flat, out=gradient["Wi"])
    np.matmul(h_rows.T, h[:-1].reshape(flat.shape), out=gradient["Wh"])
    if "b" in gradient:
        np.sum(x_rows, axis=0, out=gradient["b"])
    return value, {"params": gradient}
