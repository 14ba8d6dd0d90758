"""One layer under a quadratic loss, written for JAX."""

from collections.abc import Callable
from typing import Any

from pullback_runners.peers.jax.adapter import PEER


def _activation(jax: Any, act: str) -> Callable[[Any], Any]:
    activation: Callable[[Any], Any] = (lambda x: x) if act == "identity" else getattr(jax.nn, act)
    return activation


@PEER.form("dense_bias_act")
def _(jax: Any, /, *, act: str, **_: Any) -> Any:
    activated = _activation(jax, act)
    return lambda w, x, b: jax.numpy.sum(activated(w @ x + b[:, None]) ** 2)


@PEER.form("bias_act")
def _(jax: Any, /, *, act: str, **_: Any) -> Any:
    activated = _activation(jax, act)
    return lambda x, b: jax.numpy.sum(activated(x + b[:, None]) ** 2)


@PEER.form("conv_bias_act")
def _(jax: Any, /, *, act: str, axes: int = 2, stride: int = 1, **_: Any) -> Any:
    activated = _activation(jax, act)

    def loss(w: Any, x: Any, b: Any) -> Any:
        z = jax.lax.conv_general_dilated(x, w, (stride,) * axes, [(1, 1)] * axes)
        return jax.numpy.sum(activated(z + b.reshape(-1, *(1,) * axes)) ** 2)

    return loss


@PEER.form("attention_head")
def _(jax: Any, /, *, size: int, **_: Any) -> Any:
    jnp = jax.numpy

    def loss(wq: Any, wk: Any, wv: Any, x: Any) -> Any:
        q, k, v = x @ wq, x @ wk, x @ wv
        p = jax.nn.softmax(q @ jnp.swapaxes(k, 1, 2) * size**-0.5, axis=2)
        return jnp.sum((p @ v) ** 2)

    return loss
