"""An automatic-differentiation engine for NumPy functions, with fused and stateful rules.

    import numpy as np, pullback as pb
    def loss(w, x, b): return np.sum(np.tanh(w @ x + b) ** 2)
    value, (dw, db) = pb.value_and_grad(loss, wrt=("w", "b"))(w, x, b)

Names are loaded when they are first used: importing the package imports NumPy and nothing else.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback import errors, inplace, nn, testing
    from pullback.compiling import compile_ as compile
    from pullback.gradients import grad, jvp, value_and_grad, vjp
    from pullback.tiers import TIERS, tier

__all__ = [
    "TIERS",
    "errors",
    "grad",
    "inplace",
    "jvp",
    "nn",
    "tier",
    "value_and_grad",
    "vjp",
]

_HOMES = {
    "TIERS": "pullback.tiers:TIERS",
    "errors": "pullback.errors",
    "grad": "pullback.gradients:grad",
    "inplace": "pullback.inplace",
    "jvp": "pullback.gradients:jvp",
    "nn": "pullback.nn",
    "tier": "pullback.tiers:tier",
    "value_and_grad": "pullback.gradients:value_and_grad",
    "vjp": "pullback.gradients:vjp",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'pullback' has no attribute {name!r}")
    module, _, attribute = home.partition(":")
    value = importlib.import_module(module)
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
