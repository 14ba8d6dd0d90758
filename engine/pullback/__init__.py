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
    from pullback.blocks import Block
    from pullback.compiling import compile_ as compile  # noqa: A004 (the public name)
    from pullback.gradients import jvp, vjp
    from pullback.packing import pack
    from pullback.tiers import TIERS, tier
    from pullback.tracing import trace
    from pullback.transforms import grad, value_and_grad

__all__ = [
    "TIERS",
    "Block",
    "compile",
    "errors",
    "grad",
    "inplace",
    "jvp",
    "nn",
    "pack",
    "testing",
    "tier",
    "trace",
    "value_and_grad",
    "vjp",
]

_HOMES = {
    "Block": "pullback.blocks:Block",
    "TIERS": "pullback.tiers:TIERS",
    "compile": "pullback.compiling:compile_",
    "errors": "pullback.errors",
    "grad": "pullback.transforms:grad",
    "inplace": "pullback.inplace",
    "jvp": "pullback.gradients:jvp",
    "nn": "pullback.nn",
    "pack": "pullback.packing:pack",
    "testing": "pullback.testing",
    "tier": "pullback.tiers:tier",
    "trace": "pullback.tracing:trace",
    "value_and_grad": "pullback.transforms:value_and_grad",
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
