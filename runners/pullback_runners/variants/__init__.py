"""How a case is executed: by a tier of our engine, or by a peer."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from pullback_runners.errors import UsageError, VariantError
from pullback_runners.peers import PEERS, find_peer
from pullback_runners.variants.peers import open_peer
from pullback_runners.variants.prepared import PreparedVariant, VariantKind
from pullback_runners.variants.tiers import BASELINE, TIERS, open_tier
from pullback_runners.workloads import CPU, DEVICES, Case, Inputs, Workload, known_workloads

__all__ = [
    "BASELINE",
    "TIERS",
    "PreparedVariant",
    "VariantKind",
    "kind_of",
    "known_variants",
    "open_variant",
    "refuse_unknown_device",
    "refuse_unknown_variants",
    "why_no_form",
]


def kind_of(variant: str) -> VariantKind:
    """Whether a name is a tier of our engine or a peer."""
    return "tier" if variant in TIERS else "peer"


def known_variants() -> list[str]:
    """Tiers, our peers, and the peers that workloads declare."""
    declared = (peer for workload in known_workloads() for peer in workload.peers)
    return list(dict.fromkeys([*TIERS, *PEERS, *declared]))


def refuse_unknown_variants(names: Iterable[str], known: Sequence[str] = ()) -> None:
    """Refuse names that are no variant, of those known here if none are given, before anything is measured."""
    known = known or known_variants()
    for name in names:
        if name not in known:
            raise UsageError(f"no variant {name!r}; known: {', '.join(known)}")


def refuse_unknown_device(device: str) -> None:
    """Refuse what is no device, before anything is measured."""
    if device not in DEVICES:
        raise UsageError(f"no device {device!r}; known: {', '.join(DEVICES)}")


def why_no_form(variant: str, device: str) -> str | None:
    """Why a variant cannot compute on a device, wherever it is; None if it can."""
    if device == CPU:
        return None
    if variant in TIERS:
        return f"the engine has no form for {device}"
    if variant in PEERS and device in find_peer(variant).devices:
        return None
    return f"it is written for the CPU, with no form for {device}"


def open_variant(
    variant: str, workload: Workload, case: Case, inputs: Inputs
) -> AbstractContextManager[PreparedVariant]:
    """Make a case ready to be called the way `variant` does it, while the block lasts."""
    reason = why_no_form(variant, case.device)
    if reason is not None:
        raise VariantError("unavailable", f"{variant}: {reason}")
    open_ = open_tier if variant in TIERS else open_peer
    return open_(variant, workload, case, inputs)
