"""Variants that a workload declares itself: `numpy` as a careful person writes it, or any engine as its users call it."""

from collections.abc import Mapping
from typing import Any

from pullback_runners.errors import VariantError
from pullback_runners.peers.peer import Peer, PreparedCase
from pullback_runners.workloads import Case, Inputs, ValueAndGradients, Workload


class HandWrittenPeer(Peer):
    """Variants that a workload declares by `@workload.variant(name)` or `@workload.peer(name)`, under any name."""

    packages = ("numpy",)

    def __init__(self, name: str) -> None:
        self.name = name

    def offers(self, workload: Workload) -> bool:
        """True if the workload declares this variant."""
        return self.name in workload.variants

    def prepare(self, workload: Workload, case: Case, inputs: Inputs) -> PreparedCase:
        """Bind the call that computes value and gradients, as the file declares it."""
        if not self.offers(workload):
            raise VariantError("unavailable", f"workload {workload.name} declares no variant {self.name!r}")
        call = workload.variants[self.name](**inputs, **dict(case.params))
        if not callable(call):
            raise VariantError(
                "exception",
                f"variant {self.name} of {workload.name} returned {type(call).__name__}; return the function that is timed",
            )
        return PreparedCase(call, lambda result: _differentiated(result, workload.derivatives, inputs))


def _differentiated(result: Any, names: tuple[str, ...], inputs: Inputs) -> ValueAndGradients:
    """Value and gradients by name; a tuple of gradients is in the order of the names, and one alone may stand for itself."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise VariantError(
            "exception", f"the variant returned {type(result).__name__}; return (value, gradients), a dict by argument"
        )
    value, gradients = result
    argument = inputs.get(names[0])
    if len(names) == 1 and isinstance(argument, _CONTAINERS) and _is_like(gradients, argument):
        return value, {names[0]: gradients}
    if isinstance(gradients, Mapping):
        return value, dict(gradients)
    listed = list(gradients) if isinstance(gradients, tuple | list) else [gradients]
    if len(listed) != len(names):
        raise VariantError(
            "exception", f"the variant returned {len(listed)} gradients; return those of {', '.join(names)}"
        )
    return value, dict(zip(names, listed, strict=True))


_CONTAINERS = (Mapping, tuple, list)


def _is_like(gradient: Any, argument: Any) -> bool:
    """True if a gradient holds arrays by the names, or in the places, in which its argument does."""
    if isinstance(argument, Mapping):
        return (
            isinstance(gradient, Mapping)
            and gradient.keys() == argument.keys()
            and all(_is_like(gradient[name], argument[name]) for name in argument)
        )
    if isinstance(argument, tuple | list):
        return (
            isinstance(gradient, tuple | list)
            and len(gradient) == len(argument)
            and all(map(_is_like, gradient, argument))
        )
    return not isinstance(gradient, _CONTAINERS)


PEER = HandWrittenPeer("numpy")
