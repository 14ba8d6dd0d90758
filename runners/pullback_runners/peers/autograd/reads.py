"""Reads of constant arrays, written for HIPS autograd."""

from typing import Any

from pullback_runners.peers.autograd.adapter import PEER


@PEER.form("touch_large_array")
def _(autograd: Any, /, *, form: str, **_: Any) -> Any:
    return (lambda p, c: c[1] * p) if form == "index" else (lambda p, c, e: autograd.numpy.dot(c, e) * p)


@PEER.form("scalar_reads")
def _(_autograd: Any, /, *, n: int) -> Any:
    def polynomial(c: Any, x: Any) -> Any:
        y = c[n - 1]
        for k in range(n - 2, -1, -1):
            y = y * x + c[k]
        return y

    return polynomial


@PEER.form("constant_matrix")
def _(autograd: Any, /, **_: Any) -> Any:
    return lambda x, a: autograd.numpy.sum(autograd.numpy.dot(a, x) ** 2)
