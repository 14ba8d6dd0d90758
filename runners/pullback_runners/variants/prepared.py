"""A case bound to its arguments and to one way of executing it: what is checked, counted and timed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pullback_runners.workloads import Differentiated

VariantKind = Literal["tier", "peer"]


@dataclass(frozen=True)
class PreparedVariant:
    """One call is one value with all gradients asked for."""

    call: Callable[[], Any]
    """The bare call, as a user would write it; this is timed."""
    differentiated: Callable[[Any], Differentiated]
    """What a call returned, in the form that the oracle uses."""
    plan: Callable[[], dict[str, Any] | None]
    """What the engine says of its own program, or None."""
