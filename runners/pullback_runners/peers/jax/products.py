"""Matrix products, written for JAX."""

from typing import Any

from pullback_runners.peers.jax.adapter import PEER
from pullback_runners.workloads import Inputs


@PEER.form("mul_restore")
def _(jax: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    return lambda a, b, c: jax.numpy.sum((a @ b) ** 2)  # noqa: ARG005 - nothing is overwritten
