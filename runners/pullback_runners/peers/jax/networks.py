"""Networks of several layers, written for JAX."""

from typing import Any

from pullback_runners.peers.jax.adapter import PEER
from pullback_runners.workloads import Inputs


@PEER.form("mlp_step")
def _(jax: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    jnp = jax.numpy

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = jax.nn.relu(w1 @ x + b1[:, None])
        h = jax.nn.relu(w2 @ h + b2[:, None])
        z = w3 @ h + b3[:, None]
        return jnp.mean(jax.nn.logsumexp(z, axis=0) - z[labels, jnp.arange(len(labels))])

    return loss
