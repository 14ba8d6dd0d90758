"""Steps of integration methods, written for HIPS autograd."""

from typing import Any

from pullback_runners.peers.autograd.adapter import PEER
from pullback_runners.workloads.lotka_volterra import runge_kutta_step


@PEER.form("lotka_volterra")
def _(_autograd: Any, /, *, steps: int) -> Any:
    def end(rates: Any, start: Any) -> Any:
        (a, b, c, d), (u, v) = (rates[i] for i in range(4)), (start[0], start[1])
        for _ in range(steps):
            u, v = runge_kutta_step((a, b, c, d), u, v)
        return u**2 + v**2

    return end
