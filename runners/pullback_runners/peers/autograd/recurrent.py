"""Recurrent layers over a sequence, written for HIPS autograd."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback_runners.peers.autograd.adapter import PEER
from pullback_runners.peers.peer import Form
from pullback_runners.peers.recurrent_weights import gradient_of, weights_of
from pullback_runners.workloads import Inputs


@PEER.form("rnn", with_inputs=True)
def _(autograd: Any, inputs: Inputs, /, *, steps: int, batch: int, hidden: int, **_: Any) -> Form:
    anp = autograd.numpy

    def loss(wi: Any, wh: Any, *rest: Any) -> Any:
        *bias, x = rest
        before = sum(bias, anp.dot(x, wi.T))
        h, total = np.zeros((batch, hidden), x.dtype), 0.0
        for t in range(steps):
            h = anp.tanh(before[t] + anp.dot(h, wh.T))
            total = total + anp.sum(h**2)
        return total

    return _form("rnn", loss, inputs)


@PEER.form("lstm", with_inputs=True)
def _(autograd: Any, inputs: Inputs, /, *, steps: int, batch: int, hidden: int, **_: Any) -> Form:
    anp = autograd.numpy
    sigmoid = partial(_sigmoid, anp)

    def loss(wi: Any, wh: Any, *rest: Any) -> Any:
        *bias, x = rest
        before = sum(bias, anp.dot(x, wi.T))
        h = c = np.zeros((batch, hidden), x.dtype)
        total = 0.0
        for t in range(steps):
            z = before[t] + anp.dot(h, wh.T)
            i, f, o = sigmoid(z[:, :hidden]), sigmoid(z[:, hidden : 2 * hidden]), sigmoid(z[:, 3 * hidden :])
            c = f * c + i * anp.tanh(z[:, 2 * hidden : 3 * hidden])
            h = o * anp.tanh(c)
            total = total + anp.sum(h**2)
        return total

    return _form("lstm", loss, inputs)


@PEER.form("gru", with_inputs=True)
def _(autograd: Any, inputs: Inputs, /, *, steps: int, batch: int, hidden: int, **_: Any) -> Form:
    anp = autograd.numpy
    sigmoid = partial(_sigmoid, anp)

    def loss(wi: Any, wh: Any, *rest: Any) -> Any:
        *bias, x = rest
        before = sum(bias, anp.dot(x, wi.T))
        h = np.zeros((batch, hidden), x.dtype)
        total = 0.0
        for t in range(steps):
            product = anp.dot(h, wh.T)
            gates = sigmoid(before[t, :, : 2 * hidden] + product[:, : 2 * hidden])
            r, z = gates[:, :hidden], gates[:, hidden:]
            n = anp.tanh(before[t, :, 2 * hidden :] + r * product[:, 2 * hidden :])
            h = (1 - z) * n + z * h
            total = total + anp.sum(h**2)
        return total

    return _form("gru", loss, inputs)


def _sigmoid(anp: Any, z: Any) -> Any:
    return 0.5 * (anp.tanh(0.5 * z) + 1.0)


def _form(layer: str, loss: Callable[..., Any], inputs: Inputs) -> Form:
    params = inputs["params"]
    arguments = {**weights_of(layer, params), "x": inputs["x"]}
    return Form(loss, arguments, tuple(params), partial(gradient_of, layer, params))
