"""Searches whose loops have a bound in reverse mode: the bound is doubled until it cuts nothing short."""

from collections.abc import Callable
from typing import Any

from pullback_runners.gradbench.engine import Engine

LARGEST = 2**16


def search(
    engine: Engine, name: str, make: Callable[[int], Callable[..., Any]], start: Any, limit: int
) -> Callable[[], Any]:
    """The call of `make(limit)`, which gives a result and whether it is complete, with a bound that suffices."""
    while True:
        plan = engine.plan((name, limit), lambda limit=limit: make(limit))  # type: ignore[misc] # of a default, not inferred
        if plan(start)[1]:
            return lambda: plan(start)[0]
        if limit >= LARGEST:
            raise ValueError(f"the search does not end within {LARGEST} steps, or meets values that are not finite")
        limit *= 2
