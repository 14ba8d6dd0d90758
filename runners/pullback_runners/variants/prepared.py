"""A case bound to its arguments and to one way of executing it: what is checked, counted and timed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pullback_runners.workloads import ValueAndGradients

VariantKind = Literal["tier", "peer"]


@dataclass(frozen=True)
class PreparedVariant:
    """One call is one value with all gradients asked for."""

    call: Callable[[], Any]
    """The bare call, as a user would write it; this is timed."""
    differentiated: Callable[[Any], ValueAndGradients]
    """The result of a call, in the form that the oracle uses."""
    plan: Callable[[], dict[str, Any] | None]
    """The engine's account of its own program, or None."""
    may_be_late: bool = False
    """True if a call may return before its result is computed, as one of JAX does that a user wrote."""


def awaited(call: Callable[[], Any], result: Any) -> Callable[[], Any]:
    """The call, with a wait for its result if one that it returned can be waited for; otherwise bare."""
    if not any(hasattr(each, "block_until_ready") for each in _leaves(result)):
        return call

    def call_and_wait() -> Any:
        result = call()
        for each in _leaves(result):
            if hasattr(each, "block_until_ready"):
                each.block_until_ready()
        return result

    return call_and_wait


def _leaves(result: Any) -> list[Any]:
    if isinstance(result, Mapping):
        return [leaf for each in result.values() for leaf in _leaves(each)]
    if isinstance(result, tuple | list):
        return [leaf for each in result for leaf in _leaves(each)]
    return [result]
