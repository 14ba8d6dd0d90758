"""One layer under a quadratic loss, written for JAX."""

from typing import Any

from pullback_runners.peers.jax.adapter import PEER
from pullback_runners.workloads import Inputs


@PEER.form("dense_bias_act")
def _(jax: Any, inputs: Inputs, /, *, act: str, **_: Any) -> Any:
    del inputs
    jnp = jax.numpy
    activated = {"tanh": jnp.tanh, "relu": jax.nn.relu}[act]
    return lambda w, x, b: jnp.sum(activated(w @ x + b[:, None]) ** 2)


@PEER.form("conv_bias_act")
def _(jax: Any, inputs: Inputs, /, *, act: str, **_: Any) -> Any:
    del inputs
    jnp = jax.numpy
    activated = {"tanh": jnp.tanh, "relu": jax.nn.relu}[act]

    def loss(w: Any, x: Any, b: Any) -> Any:
        z = jax.lax.conv(x, w, (1, 1), "SAME") + b[:, None, None]
        return jnp.sum(activated(z) ** 2)

    return loss
