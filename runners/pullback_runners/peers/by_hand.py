"""Gradients written by hand: `numpy` as a careful person writes it, beside the workload that it belongs to."""

from functools import partial
from typing import Any

from pullback_runners.errors import VariantError
from pullback_runners.peers.peer import Peer, Prepared
from pullback_runners.workloads import Case, Differentiated, Inputs, Workload


class ByHand(Peer):
    """What a workload declares by `@workload.peer(name)`; a file of workloads may declare other names than `numpy`."""

    packages = ("numpy",)

    def __init__(self, name: str) -> None:
        self.name = name

    def offers(self, workload: Workload) -> bool:
        """Whether the workload declares it."""
        return self.name in workload.peers

    def prepare(self, workload: Workload, case: Case, inputs: Inputs) -> Prepared:
        """Bind the function that computes value and gradients."""
        if not self.offers(workload):
            raise VariantError("unavailable", f"workload {workload.name} declares no peer {self.name!r}")
        return Prepared(partial(workload.peers[self.name], **inputs, **dict(case.params)), _differentiated)


def _differentiated(result: Any) -> Differentiated:
    if not isinstance(result, tuple) or len(result) != 2:
        raise VariantError(
            "exception", f"the peer returned {type(result).__name__}; return (value, gradients), a dict by argument"
        )
    value, gradients = result
    return value, dict(gradients)


PEER = ByHand("numpy")
