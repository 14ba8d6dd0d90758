"""Reads of constant arrays, written for JAX."""

from typing import Any

from pullback_runners.peers.jax.adapter import PEER
from pullback_runners.workloads import Inputs


@PEER.form("touch_large_array")
def _(jax: Any, inputs: Inputs, /, *, form: str, **_: Any) -> Any:
    del jax, inputs
    return (lambda p, c: c[1] * p) if form == "index" else (lambda p, c, e: (c @ e) * p)


@PEER.form("scalar_reads")
def _(jax: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs

    # One read a step; written out, a thousand reads take minutes to compile.
    def polynomial(c: Any, x: Any) -> Any:
        y, _ = jax.lax.scan(lambda y, each: (y * x + each, None), jax.numpy.zeros_like(x), c, reverse=True)
        return y

    return polynomial


@PEER.form("constant_matrix")
def _(jax: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    return lambda x, a: jax.numpy.sum((a @ x) ** 2)
