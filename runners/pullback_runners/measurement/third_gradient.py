"""A second opinion on a gradient that is not the oracle's: which of oracle and variant disagrees with a third form."""

from pullback_runners.measurement.gradient_check import check_gradient
from pullback_runners.variants import open_variant
from pullback_runners.workloads import UNFUSED, Case, Inputs, ValueAndGradients, Workload

OTHER = "fused"
"""The tier that is asked where the tape itself is in doubt."""


def heard(variant: str, computed: ValueAndGradients, workload: Workload, case: Case, inputs: Inputs) -> str:
    """The result of another tier, as the end of an error message; empty where none can be asked.

    Two tiers share the rules of their engine, so that two that agree do not prove the oracle wrong.
    """
    witness = OTHER if variant == UNFUSED else UNFUSED
    try:
        expected = workload.closed_form(case, inputs)
        with open_variant(witness, workload, case, inputs) as prepared:
            seen = prepared.differentiated(prepared.call())
        with_oracle = check_gradient(seen, expected, inputs, case.dtype).ok
        with_variant = check_gradient(computed, seen, inputs, case.dtype).ok
    except Exception:  # noqa: BLE001 - whatever keeps the witness from speaking, what is wrong has been said
        return ""
    if with_oracle:
        return f"; {witness} agrees with the oracle, {variant} does not"
    if with_variant:
        return (
            f"; {variant} and {witness} agree with each other and not with the oracle: "
            "the oracle is wrong, or a rule that both use"
        )
    return f"; oracle, {variant} and {witness} are three different answers"
