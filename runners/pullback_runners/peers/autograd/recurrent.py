"""Recurrent layers over a sequence, written for HIPS autograd."""

from typing import Any

import numpy as np

from pullback_runners.peers.autograd.adapter import PEER
from pullback_runners.peers.peer import Form
from pullback_runners.peers.recurrent_weights import (
    gru_gradient,
    gru_weights,
    lstm_gradient,
    lstm_weights,
    rnn_gradient,
    rnn_weights,
)
from pullback_runners.workloads import Inputs


@PEER.form("rnn")
def _(autograd: Any, inputs: Inputs, /, *, steps: int, batch: int, hidden: int, **_: Any) -> Form:
    anp = autograd.numpy
    params = inputs["params"]

    def loss(wi: Any, wh: Any, *rest: Any) -> Any:
        *bias, x = rest
        before = sum(bias, anp.dot(x, wi.T))
        h, total = np.zeros((batch, hidden), x.dtype), 0.0
        for t in range(steps):
            h = anp.tanh(before[t] + anp.dot(h, wh.T))
            total = total + anp.sum(h**2)
        return total

    return Form(
        loss, {**rnn_weights(params), "x": inputs["x"]}, tuple(params), lambda found: rnn_gradient(params, found)
    )


@PEER.form("lstm")
def _(autograd: Any, inputs: Inputs, /, *, steps: int, batch: int, hidden: int, **_: Any) -> Form:
    anp = autograd.numpy
    params = inputs["params"]

    def sigmoid(z: Any) -> Any:
        return 0.5 * (anp.tanh(0.5 * z) + 1.0)

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

    return Form(
        loss, {**lstm_weights(params), "x": inputs["x"]}, tuple(params), lambda found: lstm_gradient(params, found)
    )


@PEER.form("gru")
def _(autograd: Any, inputs: Inputs, /, *, steps: int, batch: int, hidden: int, **_: Any) -> Form:
    anp = autograd.numpy
    params = inputs["params"]

    def sigmoid(z: Any) -> Any:
        return 0.5 * (anp.tanh(0.5 * z) + 1.0)

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

    return Form(
        loss, {**gru_weights(params), "x": inputs["x"]}, tuple(params), lambda found: gru_gradient(params, found)
    )
