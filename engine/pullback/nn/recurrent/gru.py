"""r, z = sigma(Wi x + Wh h + b); h' = (1 - z) * n + z * h, for all steps, with the candidate n in one of two forms.

    reset "after" the product:   n = tanh(Wi x + b + r * (Wh h))
    reset "before" the product:  n = tanh(Wi x + b + Wh (r * h))

Rows of the weights: r, z, n. Saved, beside the states: the gates and the candidate of all steps, made in place where
the product with x lies; with reset after also u = Wh h of the candidate. In reverse the slopes of all steps are made at
once and become the cotangents in place; only dh goes step by step.

"after" has one product over all steps for each of Wi and Wh: they differ in the rows of n, whose cotangent is dn for Wi
and r * dn for Wh, so both are kept. "before" multiplies h by the rows of r and z, and r * h by those of n, forward and
in reverse: two products where the other form has one, and r * h of all steps made again after the loop.
Arrays (steps x batch x hidden): forward 1 result and 4 or 3 saved, reverse 4 either way; each with a few steps' worths.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.constant_arrays import number
from pullback.core.types import Shape
from pullback.nn.recurrent.cells import gru_step
from pullback.nn.recurrent.gate_kernels import sigmoid_in_place, slope_of_sigmoid, slope_of_tanh
from pullback.nn.recurrent.reverse import Array, Reverse, product_with_input, rows
from pullback.nn.recurrent.rule import Recurrence
from pullback.nn.recurrent.weights import Weights


class _Gru(Recurrence):
    gates = 3
    results = 2

    def saved(self, steps: int, batch: int, hidden: int, params: dict[str, Any]) -> tuple[Shape, ...]:
        return ((steps, batch, 3 * hidden),)


class _ResetAfter(_Gru):
    results = 3

    def saved(self, steps: int, batch: int, hidden: int, params: dict[str, Any]) -> tuple[Shape, ...]:
        return (*super().saved(steps, batch, hidden, params), (steps, batch, hidden))

    def forward_spare(self, batch: int, hidden: int) -> tuple[Shape, ...]:
        return ((batch, 3 * hidden), (batch, hidden))

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
        (states, gates, u), (product, reset) = results, spare
        product_with_input(x, weights, gates)
        (before,) = initial
        for step, (h, gate) in enumerate(zip(states, gates, strict=True)):
            r, z, n = split(gate)
            if before is None:
                u[step].fill(0)
            else:
                np.matmul(before, weights.wh.T, out=product)
                gate[:, : 2 * hidden] += product[:, : 2 * hidden]
                np.copyto(u[step], product[:, 2 * hidden :])
            sigmoid_in_place(gate[:, : 2 * hidden])
            n += np.multiply(r, u[step], out=reset)
            np.tanh(n, out=n)
            mix(z, n, before, h)
            before = h

    def backward_spare(self, steps: int, batch: int, hidden: int) -> tuple[Shape, ...]:
        return ((steps, batch, 3, hidden), (steps, batch, hidden), (batch, hidden), (batch, hidden))

    def backward(self, reverse: Reverse, params: dict[str, Any]) -> None:
        (h, gates, u), (h_bar, *_), (h0,) = reverse.results, reverse.bars, reverse.initial
        steps = len(h)
        (h0_bar,) = reverse.initial_bars
        # Until Wh is done, dz holds for the candidate the cotangent that Wh gets, r * dn; dn is the one that Wi gets.
        dz, dn, dh, product, of_product = reverse.spare
        r, z, n = split(gates)
        slopes_of_mix(z, n, h, h0, dz[:, :, 1], dn, spare=dz[:, :, 0])
        np.multiply(dn, r, out=dz[:, :, 2])
        slope_of_sigmoid(r, dz[:, :, 0])
        dz[:, :, 0] *= u
        dz[:, :, 0] *= dn
        flat = dz.reshape(gates.shape)
        np.copyto(dh, h_bar[-1])
        for step in range(steps - 1, -1, -1):
            dz[step] *= dh[:, None]
            dn[step] *= dh
            if step or h0_bar is not None:
                dh *= z[step]
                dh += np.matmul(flat[step], reverse.weights.wh, out=product)
            if step:
                dh += h_bar[step - 1]
        if reverse.gradient is not None:
            reverse.pull_product(flat, h[:-1], h0, reverse.gradient.wh, of_product)
        np.copyto(dz[:, :, 2], dn)
        if h0_bar is not None:
            np.copyto(h0_bar, dh)
        reverse.pull_input(rows(flat))

    def step(self, weights: Weights, x: Any, states: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        return (gru_step(weights, x, states[0], "after"),)


class _ResetBefore(_Gru):
    def forward_spare(self, batch: int, hidden: int) -> tuple[Shape, ...]:
        return ((batch, 2 * hidden), (batch, hidden), (batch, hidden))

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
        (states, gates), (product, reset, candidate) = results, spare
        product_with_input(x, weights, gates)
        (before,) = initial
        for h, gate in zip(states, gates, strict=True):
            r, z, n = split(gate)
            if before is not None:
                gate[:, : 2 * hidden] += np.matmul(before, weights.wh[: 2 * hidden].T, out=product)
            sigmoid_in_place(gate[:, : 2 * hidden])
            if before is not None:
                np.multiply(r, before, out=reset)
                n += np.matmul(reset, weights.wh[2 * hidden :].T, out=candidate)
            np.tanh(n, out=n)
            mix(z, n, before, h)
            before = h

    def backward_spare(self, steps: int, batch: int, hidden: int) -> tuple[Shape, ...]:
        return ((steps, batch, 3, hidden), (steps - 1, batch, hidden), *[(batch, hidden)] * 3)

    def backward(self, reverse: Reverse, params: dict[str, Any]) -> None:
        (h, gates), (h_bar, *_), (h0,) = reverse.results, reverse.bars, reverse.initial
        hidden = h.shape[-1]
        steps, batch, _ = h.shape
        (h0_bar,) = reverse.initial_bars
        dz, reset, product, dh, dq, of_product = reverse.spare
        r, z, n = split(gates)
        slopes_of_mix(z, n, h, h0, dz[:, :, 1], dz[:, :, 2], spare=dz[:, :, 0])
        slope_of_sigmoid(r, dz[:, :, 0])
        dz[1:, :, 0] *= h[:-1]
        np.multiply(dz[0, :, 0], number(0, h.dtype) if h0 is None else h0, out=dz[0, :, 0])
        flat = dz.reshape(steps, batch, 3 * hidden)
        np.copyto(dh, h_bar[-1])
        for step in range(steps - 1, -1, -1):
            dz[step, :, 1:] *= dh[:, None]
            if not step and h0 is None:
                break  # the state before was zero: nothing went through r and Wh
            np.matmul(dz[step, :, 2], reverse.weights.wh[2 * hidden :], out=dq)  # r * h gets this
            dz[step, :, 0] *= dq
            if step or h0_bar is not None:
                dh *= z[step]
                dh += np.multiply(dq, r[step], out=dq)
                dh += np.matmul(flat[step, :, : 2 * hidden], reverse.weights.wh[: 2 * hidden], out=product)
            if step:
                dh += h_bar[step - 1]
        if reverse.gradient is not None:
            wh = reverse.gradient.wh
            of_gates, of_candidate = of_product[: 2 * hidden], of_product[2 * hidden :]
            reverse.pull_product(flat[:, :, : 2 * hidden], h[:-1], h0, wh[: 2 * hidden], of_gates)
            np.multiply(r[1:], h[:-1], out=reset)
            first = None if h0 is None else np.multiply(r[0], h0, out=product)
            reverse.pull_product(flat[:, :, 2 * hidden :], reset, first, wh[2 * hidden :], of_candidate)
        if h0_bar is not None:
            np.copyto(h0_bar, dh)
        reverse.pull_input(rows(flat))

    def step(self, weights: Weights, x: Any, states: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        return (gru_step(weights, x, states[0], "before"),)


def split(gates: Array) -> tuple[Array, Array, Array]:
    """Reset gate, update gate and candidate."""
    hidden = gates.shape[-1] // 3
    return gates[..., :hidden], gates[..., hidden : 2 * hidden], gates[..., 2 * hidden :]


def mix(z: Array, n: Array, before: Any, h: Array) -> None:
    """The next state (1 - z) * n + z * before, as n + z * (before - n)."""
    np.subtract(number(0, n.dtype) if before is None else before, n, out=h)
    h *= z
    h += n


def slopes_of_mix(z: Array, n: Array, h: Array, h0: Any, by_update: Array, by_candidate: Array, spare: Array) -> None:
    """Write the derivatives of h by z and n, before activation: (before - n) * z * (1 - z) and (1 - z) * (1 - n^2)."""
    np.subtract(number(1, z.dtype), z, out=spare)
    slope_of_tanh(n, by_candidate)
    by_candidate *= spare
    np.subtract(h[:-1], n[1:], out=by_update[1:])
    np.subtract(number(0, n.dtype) if h0 is None else h0, n[0], out=by_update[0])
    by_update *= z
    by_update *= spare


gru_reset_after = _ResetAfter("gru_reset_after")
gru_reset_before = _ResetBefore("gru_reset_before")
