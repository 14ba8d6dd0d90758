"""Reads of constant arrays, written for JAX."""

from typing import Any

from pullback_runners.peers.jax.adapter import PEER


@PEER.form("touch_large_array")
def _(_jax: Any, /, *, form: str, **_: Any) -> Any:
    return (lambda p, c: c[1] * p) if form == "index" else (lambda p, c, e: (c @ e) * p)


@PEER.form("scalar_reads")
def _(jax: Any, /, **_: Any) -> Any:
    # One read a step; written out, a thousand reads take minutes to compile.
    def polynomial(c: Any, x: Any) -> Any:
        y, _ = jax.lax.scan(lambda y, each: (y * x + each, None), jax.numpy.zeros_like(x), c, reverse=True)
        return y

    return polynomial


@PEER.form("constant_matrix")
def _(jax: Any, /, **_: Any) -> Any:
    return lambda x, a: jax.numpy.sum((a @ x) ** 2)
