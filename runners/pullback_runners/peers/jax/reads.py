"""Reads of constant arrays, written for JAX."""

from typing import Any

from pullback_runners.peers.jax.adapter import PEER
from pullback_runners.workloads import Inputs


@PEER.form("touch_large_array")
def _(jax: Any, inputs: Inputs, /, *, form: str, **_: Any) -> Any:
    del jax, inputs
    return (lambda p, c: c[1] * p) if form == "index" else (lambda p, c, e: (c @ e) * p)
