"""Statistical and financial models, written for JAX."""

from typing import Any

from pullback_runners.peers.jax.adapter import PEER
from pullback_runners.workloads.black_scholes import ROOT_HALF
from pullback_runners.workloads.logistic_regression import RIDGE


@PEER.form("black_scholes")
def _(jax: Any, /, **_: Any) -> Any:
    jnp = jax.numpy

    def total(s: Any, v: Any, r: Any, k: Any, t: Any) -> Any:
        spread = v * jnp.sqrt(t)
        d1 = (jnp.log(s / k) + (r + 0.5 * v**2) * t) / spread
        below1, below2 = (0.5 * (1 + jax.lax.erf(d * ROOT_HALF)) for d in (d1, d1 - spread))
        return jnp.sum(s * below1 - k * jnp.exp(-r * t) * below2)

    return total


@PEER.form("logistic_regression")
def _(jax: Any, /, **_: Any) -> Any:
    jnp = jax.numpy
    return lambda w, b, x, y: jnp.mean(jax.nn.softplus(-y * (x @ w + b))) + 0.5 * RIDGE * jnp.sum(w**2)
