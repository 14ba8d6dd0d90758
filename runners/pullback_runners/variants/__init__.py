"""Variants: the ways to execute a case, by a tier of our engine or by a peer."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pullback_runners.errors import UsageError, VariantError
from pullback_runners.peers import PEERS, find_peer
from pullback_runners.variants.peers import open_peer
from pullback_runners.variants.prepared import PreparedVariant, VariantKind, awaited
from pullback_runners.variants.tiers import open_tier
from pullback_runners.workloads import CPU, DEVICES, TIERS, Case, Inputs, Workload, known_workloads

__all__ = [
    "TIERS",
    "PreparedVariant",
    "VariantKind",
    "awaited",
    "kind_of",
    "known_variants",
    "open_variant",
    "refuse_unknown_device",
    "refuse_unknown_variants",
    "value_of",
    "why_no_form",
]


def kind_of(variant: str) -> VariantKind:
    """The kind of a variant: a tier of our engine or a peer."""
    return "tier" if variant in TIERS else "peer"


def known_variants(*, of_ours: bool = True) -> list[str]:
    """Tiers, our peers, and the variants that workloads declare; without our workloads what those of others have."""
    workloads = [each for each in known_workloads() if of_ours or each.is_foreign]
    tiers = TIERS if any(each.has_numpy for each in workloads) else ()
    declared = (variant for each in workloads for variant in each.variants)
    return list(dict.fromkeys([*tiers, *(PEERS if of_ours else ()), *declared]))


def refuse_unknown_variants(names: Iterable[str], known: Sequence[str]) -> None:
    """Refuse names that are none of the known variants, before anything is measured."""
    for name in names:
        if name not in known:
            raise UsageError(f"no variant {name!r}; known: {', '.join(known)}")


def refuse_unknown_device(device: str) -> None:
    """Refuse what is no device, before anything is measured."""
    if device not in DEVICES:
        raise UsageError(f"no device {device!r}; known: {', '.join(DEVICES)}")


def why_no_form(variant: str, device: str) -> str | None:
    """The reason why a variant cannot compute on a device of this kind on any machine; None if it can."""
    if device == CPU or variant in TIERS:
        return None
    if variant in PEERS and device in find_peer(variant).devices:
        return None
    return f"it is written for the CPU, with no form for {device}"


def value_of(variant: str, workload: Workload, case: Case) -> Callable[[Inputs], Any]:
    """The value that a variant of a workload computes, as a function of other arguments."""
    params = dict(case.params)
    if variant in workload.variants:
        return lambda inputs: workload.variants[variant](**inputs, **params)()[0]
    if workload.has_numpy:
        function = workload(**params)
        return lambda inputs: function(*inputs.values())
    raise VariantError("unavailable", f"workload {workload.name} has no variant {variant!r}")


def open_variant(
    variant: str, workload: Workload, case: Case, inputs: Inputs
) -> AbstractContextManager[PreparedVariant]:
    """Make a case ready to be called the way `variant` does it, while the block lasts."""
    reason = why_no_form(variant, case.device)
    if reason is not None:
        raise VariantError("unavailable", f"{variant}: {reason}")
    open_ = open_tier if variant in TIERS else open_peer
    return open_(variant, workload, case, inputs)
