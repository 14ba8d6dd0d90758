"""How a case is executed: by a tier of our engine, or by a peer."""

from contextlib import AbstractContextManager

from pullback_runners.variants.peers import open_peer
from pullback_runners.variants.prepared import PreparedVariant, VariantKind
from pullback_runners.variants.tiers import BASELINE, TIERS, open_tier
from pullback_runners.workloads import Case, Inputs, Workload

__all__ = ["BASELINE", "TIERS", "PreparedVariant", "VariantKind", "kind_of", "open_variant"]


def kind_of(variant: str) -> VariantKind:
    """Whether a name is a tier of our engine or a peer."""
    return "tier" if variant in TIERS else "peer"


def open_variant(
    variant: str, workload: Workload, case: Case, inputs: Inputs
) -> AbstractContextManager[PreparedVariant]:
    """Make a case ready to be called the way `variant` does it, while the block lasts."""
    open_ = open_tier if variant in TIERS else open_peer
    return open_(variant, workload, case, inputs)
