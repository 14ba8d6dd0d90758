"""How a case is executed: by a tier of our engine, or by a peer."""

from collections.abc import Iterable
from contextlib import AbstractContextManager

from pullback_runners.errors import UsageError
from pullback_runners.peers import PEERS
from pullback_runners.variants.peers import open_peer
from pullback_runners.variants.prepared import PreparedVariant, VariantKind
from pullback_runners.variants.tiers import BASELINE, TIERS, open_tier
from pullback_runners.workloads import Case, Inputs, Workload, known_workloads

__all__ = [
    "BASELINE",
    "TIERS",
    "PreparedVariant",
    "VariantKind",
    "kind_of",
    "known_variants",
    "open_variant",
    "refuse_unknown_variants",
]


def kind_of(variant: str) -> VariantKind:
    """Whether a name is a tier of our engine or a peer."""
    return "tier" if variant in TIERS else "peer"


def known_variants() -> list[str]:
    """Tiers, our peers, and the peers that workloads declare."""
    declared = (peer for workload in known_workloads() for peer in workload.peers)
    return list(dict.fromkeys([*TIERS, *PEERS, *declared]))


def refuse_unknown_variants(names: Iterable[str]) -> None:
    """Refuse names that are no variant, before anything is measured."""
    known = known_variants()
    for name in names:
        if name not in known:
            raise UsageError(f"no variant {name!r}; known: {', '.join(known)}")


def open_variant(
    variant: str, workload: Workload, case: Case, inputs: Inputs
) -> AbstractContextManager[PreparedVariant]:
    """Make a case ready to be called the way `variant` does it, while the block lasts."""
    open_ = open_tier if variant in TIERS else open_peer
    return open_(variant, workload, case, inputs)
