"""Peers: other engines on the same workloads, each an adapter in a file or a package of its own.

A package holds the `adapter`, which says how the engine is called, and beside it one file of forms for each family of
workloads; a file put there is found.

A peer that is not installed is absent, not an error: `find_peer(name).available()` says why. Adapters import their engine
when they are first used, so asking which are here costs nothing.

    peer = find_peer("jax")
    if peer.available() is None and peer.offers(workload):
        prepared = peer.prepare(workload, case, inputs)
        result = prepared.call()                     # waits until the result is there
        value, gradients = prepared.differentiated(result)
"""

import importlib
import pkgutil

from pullback_runners.errors import UsageError
from pullback_runners.peers.by_hand import HandWrittenPeer
from pullback_runners.peers.peer import Form, FormsPeer, Peer, PreparedCase, QueuedCall

__all__ = ["PEERS", "Form", "FormsPeer", "HandWrittenPeer", "Peer", "PreparedCase", "QueuedCall", "find_peer"]

_ADAPTERS = {
    "numpy": "by_hand",
    "autograd": "autograd.adapter",
    "jax": "jax.adapter",
    "torch": "torch.adapter",
    "torch-compile": "torch.compiled",
    "numba": "numba",
}

PEERS = tuple(_ADAPTERS)
"""Every peer that the product knows, in the order of tables."""


def find_peer(name: str) -> Peer:
    """Return the peer of this name, installed or not."""
    if name not in _ADAPTERS:
        raise UsageError(f"no peer {name!r}; known: {', '.join(PEERS)}")
    # Adapters know workloads, and those our engine: a worker decides which engine that is before anything imports it.
    engine, _, _ = _ADAPTERS[name].partition(".")
    package = importlib.import_module(f"{__name__}.{engine}")
    for file in pkgutil.iter_modules(getattr(package, "__path__", ()), f"{package.__name__}."):
        importlib.import_module(file.name)
    peer: Peer = importlib.import_module(f"{__name__}.{_ADAPTERS[name]}").PEER
    return peer
