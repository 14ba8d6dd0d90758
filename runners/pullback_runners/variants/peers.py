"""Peers: other engines on the same case. Now `numpy`, the gradient written by hand beside its workload."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pullback_runners.errors import VariantError
from pullback_runners.variants.prepared import PreparedVariant
from pullback_runners.workloads import Case, Differentiated, Inputs, Workload


@contextmanager
def open_peer(peer: str, workload: Workload, case: Case, inputs: Inputs) -> Iterator[PreparedVariant]:
    """Bind a peer's own way of computing the same value and gradients."""
    if peer not in workload.peers:
        offered = ", ".join(sorted(workload.peers)) or "none"
        raise VariantError("unavailable", f"workload {workload.name} has no peer {peer!r}, it has {offered}")
    run = workload.peers[peer]
    params = dict(case.params)

    def call() -> Any:
        return run(**inputs, **params)

    def differentiated(result: Any) -> Differentiated:
        value, gradients = result
        return value, dict(gradients)

    yield PreparedVariant(call, differentiated, lambda: None)
