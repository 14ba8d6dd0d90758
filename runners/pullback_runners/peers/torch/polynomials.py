"""Polynomials over an array, written for PyTorch."""

from typing import Any

from pullback_runners.peers.torch.adapter import PEER


@PEER.form("poly9_broadcast")
def _(_torch: Any, /, **_: Any) -> Any:
    def total(x: Any, *coefficients: Any) -> Any:
        y = coefficients[9] * x + coefficients[8]
        for c in reversed(coefficients[:8]):
            y = y * x + c
        return y.sum()

    return total


@PEER.form("poly9_powers")
def _(_torch: Any, /, **_: Any) -> Any:
    return lambda x, c0, *higher: sum((c * x**power for power, c in enumerate(higher, start=1)), c0).sum()
