"""Steps of integration methods, written for PyTorch."""

from typing import Any

from pullback_runners.peers.torch.adapter import PEER
from pullback_runners.workloads.lotka_volterra import runge_kutta_step


@PEER.form("lotka_volterra")
def _(_torch: Any, /, *, steps: int) -> Any:
    def end(rates: Any, start: Any) -> Any:
        numbers, (u, v) = rates.unbind(), start.unbind()
        for _ in range(steps):
            u, v = runge_kutta_step(numbers, u, v)
        return u**2 + v**2

    return end
