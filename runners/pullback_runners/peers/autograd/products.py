"""Matrix products, written for HIPS autograd."""

from typing import Any

from pullback_runners.peers.autograd.adapter import PEER
from pullback_runners.workloads.gemm_restore import ALPHA, BETA


@PEER.form("mul_restore")
def _(autograd: Any, /, **_: Any) -> Any:
    return lambda a, b, c: autograd.numpy.sum(autograd.numpy.dot(a, b) ** 2)  # noqa: ARG005 - nothing is overwritten


@PEER.form("gemm_restore")
def _(autograd: Any, /, *, trans_a: str, trans_b: str, **_: Any) -> Any:
    def loss(a: Any, b: Any, c: Any) -> Any:
        product = autograd.numpy.dot(a.T if trans_a == "T" else a, b.T if trans_b == "T" else b)
        return autograd.numpy.sum((ALPHA * product + BETA * c) ** 2)

    return loss


@PEER.form("recursive_mul")
def _(autograd: Any, /, *, depth: int, **_: Any) -> Any:
    def loss(a: Any, x: Any, c: Any) -> Any:  # noqa: ARG001 - nothing is overwritten
        for _ in range(depth):
            x = autograd.numpy.dot(a, x)
        return autograd.numpy.sum(x**2)

    return loss
