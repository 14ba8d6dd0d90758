"""Steps of integration methods, written for JAX."""

from typing import Any

from pullback_runners.peers.jax.adapter import PEER
from pullback_runners.workloads.lotka_volterra import runge_kutta_step


@PEER.form("lotka_volterra")
def _(jax: Any, /, *, steps: int) -> Any:
    def end(rates: Any, start: Any) -> Any:
        numbers = tuple(rates)

        def step(state: Any, _: Any) -> tuple[Any, None]:
            return runge_kutta_step(numbers, *state), None

        (u, v), _ = jax.lax.scan(step, (start[0], start[1]), None, length=steps)
        return u**2 + v**2

    return end
