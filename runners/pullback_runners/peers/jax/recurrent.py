"""Recurrent layers over a sequence, written for JAX."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.peers.jax.adapter import PEER
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
def _(jax: Any, inputs: Inputs, /, *, batch: int, hidden: int, **_: Any) -> Form:
    jnp = jax.numpy
    params = inputs["params"]

    # The product with x before the loop, as someone who cares about speed writes it.
    def loss(wi: Any, wh: Any, *rest: Any) -> Any:
        before, x = _product_with_input(wi, rest)

        def step(h: Any, before: Any) -> tuple[Any, Any]:
            h = jnp.tanh(before + h @ wh)
            return h, h

        _, states = jax.lax.scan(step, jnp.zeros((batch, hidden), x.dtype), before)
        return jnp.sum(states**2)

    return _transposed(loss, rnn_weights(params), inputs["x"], lambda found: rnn_gradient(params, found))


@PEER.form("lstm")
def _(jax: Any, inputs: Inputs, /, *, batch: int, hidden: int, **_: Any) -> Form:
    jnp = jax.numpy
    params = inputs["params"]

    def loss(wi: Any, wh: Any, *rest: Any) -> Any:
        before, x = _product_with_input(wi, rest)

        def step(state: Any, before: Any) -> tuple[Any, Any]:
            h, c = state
            i, f, g, o = jnp.split(before + h @ wh, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((batch, hidden), x.dtype)
        _, states = jax.lax.scan(step, (zeros, zeros), before)
        return jnp.sum(states**2)

    return _transposed(loss, lstm_weights(params), inputs["x"], lambda found: lstm_gradient(params, found))


@PEER.form("gru")
def _(jax: Any, inputs: Inputs, /, *, batch: int, hidden: int, **_: Any) -> Form:
    jnp = jax.numpy
    params = inputs["params"]

    def loss(wi: Any, wh: Any, *rest: Any) -> Any:
        before, x = _product_with_input(wi, rest)

        def step(h: Any, before: Any) -> tuple[Any, Any]:
            (x_r, x_z, x_n), (h_r, h_z, h_n) = (jnp.split(z, 3, axis=-1) for z in (before, h @ wh))
            n = jnp.tanh(x_n + jax.nn.sigmoid(x_r + h_r) * h_n)
            z = jax.nn.sigmoid(x_z + h_z)
            h = (1 - z) * n + z * h
            return h, h

        _, states = jax.lax.scan(step, jnp.zeros((batch, hidden), x.dtype), before)
        return jnp.sum(states**2)

    return _transposed(loss, gru_weights(params), inputs["x"], lambda found: gru_gradient(params, found))


def _product_with_input(wi: Any, rest: Any) -> tuple[Any, Any]:
    """The term that every step adds to its product with h; the rest of the arguments is b, where there is one, and x."""
    *bias, x = rest
    return sum(bias, x @ wi), x


def _transposed(
    loss: Callable[..., Any],
    weights: dict[str, Any],
    x: Any,
    gradients: Callable[[dict[str, Any]], dict[str, Any]],
) -> Form:
    """A form whose matrices are (inputs, outputs), JAX's own custom."""

    def turned(arrays: dict[str, Any]) -> dict[str, Any]:
        return {name: np.ascontiguousarray(array.T) for name, array in arrays.items()}

    return Form(loss, {**turned(weights), "x": x}, tuple(weights), lambda found: gradients(turned(found)))
