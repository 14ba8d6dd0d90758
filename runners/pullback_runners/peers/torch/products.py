"""Matrix products, written for PyTorch."""

from typing import Any

from pullback_runners.peers.torch.adapter import PEER
from pullback_runners.workloads.gemm_restore import ALPHA, BETA


@PEER.form("mul_restore")
def _(_torch: Any, /, **_: Any) -> Any:
    return lambda a, b, c: ((a @ b) ** 2).sum()  # noqa: ARG005 - nothing is overwritten


@PEER.form("gemm_restore")
def _(_torch: Any, /, *, trans_a: str, trans_b: str, **_: Any) -> Any:
    def loss(a: Any, b: Any, c: Any) -> Any:
        product = (a.T if trans_a == "T" else a) @ (b.T if trans_b == "T" else b)
        return ((ALPHA * product + BETA * c) ** 2).sum()

    return loss


@PEER.form("recursive_mul")
def _(_torch: Any, /, *, depth: int, **_: Any) -> Any:
    def loss(a: Any, x: Any, c: Any) -> Any:  # noqa: ARG001 - nothing is overwritten
        for _ in range(depth):
            x = a @ x
        return (x**2).sum()

    return loss
