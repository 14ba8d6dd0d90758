"""Matrix products, written for HIPS autograd."""

from typing import Any

from pullback_runners.peers.autograd.adapter import PEER
from pullback_runners.workloads import Inputs


@PEER.form("mul_restore")
def _(autograd: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    return lambda a, b, c: autograd.numpy.sum(autograd.numpy.dot(a, b) ** 2)  # noqa: ARG005 - nothing is overwritten
