"""Peers as variants: another way of computing the same value and gradients, while the block lasts."""

from collections.abc import Iterator
from contextlib import contextmanager

from pullback_runners.errors import VariantError
from pullback_runners.peers import PEERS, HandWrittenPeer, Peer, find_peer
from pullback_runners.variants.prepared import PreparedVariant
from pullback_runners.workloads import Case, Inputs, Workload


@contextmanager
def open_peer(peer: str, workload: Workload, case: Case, inputs: Inputs) -> Iterator[PreparedVariant]:
    """Bind a peer; one that is unknown, absent or without this workload is unavailable."""
    adapter = _adapter(peer, workload)
    if case.device not in adapter.devices:  # by hand, under the name of a peer that has a form
        raise VariantError("unavailable", f"peer {peer} of workload {workload.name} computes on the CPU only")
    prepared = adapter.prepare(workload, case, inputs)
    yield PreparedVariant(
        prepared.call, prepared.differentiated, lambda: None, may_be_late=isinstance(adapter, HandWrittenPeer)
    )


def _adapter(peer: str, workload: Workload) -> Peer:
    """The adapter of a peer; variants declared by hand come first, for a workload's file may name a peer as it likes."""
    if peer in workload.variants:
        return HandWrittenPeer(peer)
    if peer in PEERS and find_peer(peer).offers(workload):
        return find_peer(peer)
    written = [name for name in PEERS if name not in workload.variants and find_peer(name).offers(workload)]
    offered = ", ".join([*workload.variants, *written]) or "no peers"
    raise VariantError("unavailable", f"workload {workload.name} has no peer {peer!r}, it has {offered}")
