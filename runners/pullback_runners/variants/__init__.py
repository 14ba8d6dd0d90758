"""How a case is executed: by a tier of our engine, or by a peer."""

from pullback_runners.variants.peers import prepare_peer
from pullback_runners.variants.prepared import PreparedVariant, VariantKind
from pullback_runners.variants.tiers import BASELINE, TIERS, prepare_tier
from pullback_runners.workloads import Case, Inputs, Workload

__all__ = ["BASELINE", "TIERS", "PreparedVariant", "VariantKind", "kind_of", "prepare_variant"]


def kind_of(variant: str) -> VariantKind:
    """Whether a name is a tier of our engine or a peer."""
    return "tier" if variant in TIERS else "peer"


def prepare_variant(variant: str, workload: Workload, case: Case, inputs: Inputs) -> PreparedVariant:
    """Make a case ready to be called the way `variant` does it."""
    prepare = prepare_tier if variant in TIERS else prepare_peer
    return prepare(variant, workload, case, inputs)
