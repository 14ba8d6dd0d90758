"""Reads of constant arrays, written for PyTorch."""

from typing import Any

from pullback_runners.peers.torch.adapter import PEER


@PEER.form("touch_large_array")
def _(_torch: Any, /, *, form: str, **_: Any) -> Any:
    return (lambda p, c: c[1] * p) if form == "index" else (lambda p, c, e: (c @ e) * p)


@PEER.form("scalar_reads")
def _(_torch: Any, /, *, n: int) -> Any:
    def polynomial(c: Any, x: Any) -> Any:
        y = c[n - 1]
        for k in range(n - 2, -1, -1):
            y = y * x + c[k]
        return y

    return polynomial


@PEER.form("constant_matrix")
def _(_torch: Any, /, **_: Any) -> Any:
    return lambda x, a: ((a @ x) ** 2).sum()
