"""Mixtures of Gaussians, written for JAX."""

from typing import Any

from pullback_runners.peers.jax.adapter import PEER
from pullback_runners.workloads.gmm_likelihood import positions_below_diagonal


@PEER.form("gmm_likelihood")
def _(jax: Any, /, *, d: int, k: int, n: int) -> Any:
    jnp = jax.numpy
    rows, columns = positions_below_diagonal(d)

    def likelihood(weights: Any, means: Any, factors: Any, x: Any) -> Any:
        logs = factors[:, :d]
        below = jnp.zeros((k, d, d), x.dtype).at[:, rows, columns].set(factors[:, d:])
        centred = x[:, None, :] - means
        scaled = jnp.exp(logs) * centred + jnp.einsum("kij,nkj->nki", below, centred)
        exponents = weights + jnp.sum(logs, axis=1) - 0.5 * jnp.sum(scaled**2, axis=2)
        return jnp.sum(jax.nn.logsumexp(exponents, axis=1)) - n * jax.nn.logsumexp(weights)

    return likelihood
