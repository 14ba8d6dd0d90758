"""Networks of several layers, written for JAX."""

from typing import Any

from pullback_runners.peers.jax.adapter import PEER


@PEER.form("mlp_step")
def _(jax: Any, /, **_: Any) -> Any:
    jnp = jax.numpy

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = jax.nn.relu(w1 @ x + b1[:, None])
        h = jax.nn.relu(w2 @ h + b2[:, None])
        z = w3 @ h + b3[:, None]
        return jnp.mean(jax.nn.logsumexp(z, axis=0) - z[labels, jnp.arange(len(labels))])

    return loss


@PEER.form("generator_only")
def _(jax: Any, /, **_: Any) -> Any:
    jnp = jax.numpy

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, v1: Any, c1: Any, v2: Any, c2: Any, z: Any) -> Any:
        x = w2 @ jnp.tanh(w1 @ z + b1[:, None]) + b2[:, None]
        score = v2 @ jax.nn.relu(v1 @ x + c1[:, None]) + c2[:, None]
        return jnp.mean(jax.nn.softplus(-score))

    return loss


@PEER.form("lenet_step")
def _(jax: Any, /, *, batch: int) -> Any:
    jnp = jax.numpy

    def layer(k: Any, x: Any, c: Any) -> Any:
        y = jax.nn.relu(jax.lax.conv(x, k, (1, 1), "VALID") + c[:, None, None])
        return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def loss(
        k1: Any, c1: Any, k2: Any, c2: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any
    ) -> Any:
        h = layer(k2, layer(k1, x, c1), c2).reshape(batch, -1).T
        h = jax.nn.relu(w1 @ h + b1[:, None])
        h = jax.nn.relu(w2 @ h + b2[:, None])
        z = w3 @ h + b3[:, None]
        return jnp.mean(jax.nn.logsumexp(z, axis=0) - z[labels, jnp.arange(batch)])

    return loss
