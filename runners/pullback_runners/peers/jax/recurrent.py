"""Recurrent layers over a sequence, written for JAX."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.peers.jax.adapter import PEER
from pullback_runners.peers.peer import Form
from pullback_runners.peers.recurrent_weights import gradient_of, weights_of
from pullback_runners.workloads import Inputs


@PEER.form("rnn", with_inputs=True)
def _(jax: Any, inputs: Inputs, /, *, batch: int, hidden: int, **_: Any) -> Form:
    jnp = jax.numpy

    # The product with x before the loop, as someone who cares about speed writes it.
    def loss(wi: Any, wh: Any, *rest: Any) -> Any:
        before, x = _product_with_input(wi, rest)

        def step(h: Any, before: Any) -> tuple[Any, Any]:
            h = jnp.tanh(before + h @ wh)
            return h, h

        _, states = jax.lax.scan(step, jnp.zeros((batch, hidden), x.dtype), before)
        return jnp.sum(states**2)

    return _transposed("rnn", loss, inputs)


@PEER.form("lstm", with_inputs=True)
def _(jax: Any, inputs: Inputs, /, *, batch: int, hidden: int, **_: Any) -> Form:
    jnp = jax.numpy

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

    return _transposed("lstm", loss, inputs)


@PEER.form("gru", with_inputs=True)
def _(jax: Any, inputs: Inputs, /, *, batch: int, hidden: int, **_: Any) -> Form:
    jnp = jax.numpy

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

    return _transposed("gru", loss, inputs)


def _product_with_input(wi: Any, rest: Any) -> tuple[Any, Any]:
    """The term that every step adds to its product with h; the rest of the arguments is b, where there is one, and x."""
    *bias, x = rest
    return sum(bias, x @ wi), x


def _transposed(layer: str, loss: Callable[..., Any], inputs: Inputs) -> Form:
    """A form whose matrices are (inputs, outputs), JAX's own custom."""
    params = inputs["params"]
    weights = weights_of(layer, params)

    def turned(arrays: dict[str, Any]) -> dict[str, Any]:
        return {name: np.ascontiguousarray(array.T) for name, array in arrays.items()}

    arguments = {**turned(weights), "x": inputs["x"]}
    return Form(loss, arguments, tuple(weights), lambda found: gradient_of(layer, params, turned(found)))
