"""Polynomials over an array, written for HIPS autograd."""

from typing import Any

from pullback_runners.peers.autograd.adapter import PEER


@PEER.form("poly9_broadcast")
def _(autograd: Any, /, **_: Any) -> Any:
    def total(x: Any, *coefficients: Any) -> Any:
        y = coefficients[9] * x + coefficients[8]
        for c in reversed(coefficients[:8]):
            y = y * x + c
        return autograd.numpy.sum(y)

    return total


@PEER.form("poly9_powers")
def _(autograd: Any, /, **_: Any) -> Any:
    return lambda x, c0, *higher: autograd.numpy.sum(sum((c * x**power for power, c in enumerate(higher, start=1)), c0))
