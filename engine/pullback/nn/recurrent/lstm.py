"""i, f, o = sigma(Wi x + Wh h + b), g = tanh(…); c' = f * c + i * g; h' = o * tanh(c'), for all steps.

Rows of the weights: o, i, f, g, so that one call gives all gates with a sigmoid, and in reverse one product scales all
three that get their cotangent through c. Saved, beside both kinds of states: the four gates of all steps, made in place
where the product with x lies; tanh(c) is computed again. In reverse the slopes of all gates of all steps are made at
once and become the cotangents in place; dh and dc go step by step.
Arrays (steps x batch x hidden): forward 2 results and 4 gates, reverse 4 and 1; each with a step's worth of scratch.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.constant_arrays import number
from pullback.core.types import Shape
from pullback.nn.recurrent.cells import lstm_step
from pullback.nn.recurrent.gate_kernels import sigmoid_in_place, slope_of_sigmoid, slope_of_tanh
from pullback.nn.recurrent.reverse import Array, Reverse, product_with_input, rows
from pullback.nn.recurrent.rule import Recurrence
from pullback.nn.recurrent.weights import Weights


class _Lstm(Recurrence):
    gates = 4
    states = 2
    results = 3

    def saved(self, steps: int, batch: int, hidden: int, params: dict[str, Any]) -> tuple[Shape, ...]:
        return ((steps, batch, 4 * hidden),)

    def forward_spare(self, batch: int, hidden: int) -> tuple[Shape, ...]:
        return ((batch, 4 * hidden), (batch, hidden))

    def forward(
        self,
        results: Sequence[Array],
        spare: Sequence[Array],
        x: Array,
        weights: Weights,
        initial: Sequence[Any],
        params: dict[str, Any],
    ) -> None:
        hidden = weights.hidden
        (all_h, all_c, gates), (product, kept) = results, spare
        product_with_input(x, weights, gates)
        h_before, c_before = initial
        for h, c, z in zip(all_h, all_c, gates, strict=True):
            if h_before is not None:
                np.add(z, np.matmul(h_before, weights.wh.T, out=product), out=z)
            sigmoid_in_place(z[:, : 3 * hidden])
            o, i, f, g = _gates(z, hidden)
            np.tanh(g, out=g)
            np.multiply(i, g, out=c)
            if c_before is not None:
                np.add(c, np.multiply(f, c_before, out=kept), out=c)
            np.tanh(c, out=h)
            np.multiply(h, o, out=h)
            h_before, c_before = h, c

    def backward_spare(self, steps: int, batch: int, hidden: int) -> tuple[Shape, ...]:
        return ((steps, batch, 4 * hidden), (steps, batch, hidden), (batch, hidden), (batch, hidden))

    def backward(self, reverse: Reverse, params: dict[str, Any]) -> None:
        (h, c, gates), (h_bar, c_bar), (h0, c0) = reverse.results, reverse.bars, reverse.initial
        hidden = h.shape[-1]
        dz, through_h, dh, dc, of_product = reverse.spare
        _slopes(dz, through_h, c, gates, c0)
        parts = dz.reshape(*h.shape[:2], 4, hidden)
        forget = gates[:, :, 2 * hidden : 3 * hidden]
        for step in range(len(h) - 1, -1, -1):
            last = step == len(h) - 1
            if last:
                if h_bar is None:
                    dh.fill(0)
                else:
                    np.copyto(dh, h_bar[step])
                dc.fill(0)
            else:
                np.matmul(dz[step + 1], reverse.weights.wh, out=dh)
                if h_bar is not None:
                    dh += h_bar[step]
                dc *= forget[step + 1]
            dc += np.multiply(dh, through_h[step], out=through_h[step])
            if c_bar is not None:
                dc += c_bar[step]
            parts[step, :, 0] *= dh
            parts[step, :, 1:] *= dc[:, None]
        if reverse.gradient is not None:
            reverse.pull_product(dz, h[:-1], h0, reverse.gradient.wh, of_product)
        h0_bar, c0_bar = reverse.initial_bars
        if h0_bar is not None:
            np.matmul(dz[0], reverse.weights.wh, out=h0_bar)
        if c0_bar is not None:
            np.multiply(dc, forget[0], out=c0_bar)
        reverse.pull_input(rows(dz))

    def step(self, weights: Weights, x: Any, states: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        return lstm_step(weights, x, *states)


def _gates(z: Any, hidden: int) -> list[Any]:
    return [z[..., start : start + hidden] for start in range(0, 4 * hidden, hidden)]


def _slopes(dz: Array, through_h: Array, c: Array, gates: Array, c0: Any) -> None:
    """Write the derivatives of h by o and c (`through_h`), and of c by i, f and g, before their activations."""
    hidden = c.shape[-1]
    o, i, _, g = _gates(gates, hidden)
    d_o, d_i, d_f, d_g = _gates(dz, hidden)
    slope_of_sigmoid(gates[..., : 3 * hidden], dz[..., : 3 * hidden])
    np.tanh(c, out=through_h)
    d_o *= through_h
    slope_of_tanh(through_h, through_h)
    through_h *= o
    d_i *= g
    d_f[1:] *= c[:-1]
    np.multiply(d_f[0], number(0, c.dtype) if c0 is None else c0, out=d_f[0])
    slope_of_tanh(g, d_g)
    d_g *= i


lstm = _Lstm("lstm")
