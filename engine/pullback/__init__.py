"""An automatic-differentiation engine for NumPy functions, with fused and stateful rules.

    import numpy as np, pullback as pb
    def loss(w, x, b): return np.sum(np.tanh(w @ x + b) ** 2)
    value, (dw, db) = pb.value_and_grad(loss, wrt=("w", "b"))(w, x, b)

Names are loaded when they are first used: importing the package imports NumPy and nothing else.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback import debug, errors, inplace, nn, testing
    from pullback.batching import vmap
    from pullback.checkpoints import checkpoint
    from pullback.compiling import compile_ as compile  # noqa: A004 (the public name)
    from pullback.constants import cut, stop_gradient, uncut
    from pullback.jacobians import hessian, hvp, jacobian
    from pullback.linearizing import jvp, linearize, vjp
    from pullback.tiers import TIERS, tier
    from pullback.tracing import trace
    from pullback.transforms import grad, value_and_grad

__all__ = [
    "TIERS",
    "checkpoint",
    "compile",
    "cut",
    "debug",
    "errors",
    "grad",
    "hessian",
    "hvp",
    "inplace",
    "jacobian",
    "jvp",
    "linearize",
    "nn",
    "stop_gradient",
    "testing",
    "tier",
    "trace",
    "uncut",
    "value_and_grad",
    "vjp",
    "vmap",
]

_HOMES = {
    "TIERS": "pullback.tiers:TIERS",
    "checkpoint": "pullback.checkpoints:checkpoint",
    "compile": "pullback.compiling:compile_",
    "cut": "pullback.constants:cut",
    "debug": "pullback.debug",
    "errors": "pullback.errors",
    "stop_gradient": "pullback.constants:stop_gradient",
    "uncut": "pullback.constants:uncut",
    "grad": "pullback.transforms:grad",
    "inplace": "pullback.inplace",
    "hessian": "pullback.jacobians:hessian",
    "hvp": "pullback.jacobians:hvp",
    "jacobian": "pullback.jacobians:jacobian",
    "jvp": "pullback.linearizing:jvp",
    "linearize": "pullback.linearizing:linearize",
    "vmap": "pullback.batching:vmap",
    "nn": "pullback.nn",
    "testing": "pullback.testing",
    "tier": "pullback.tiers:tier",
    "trace": "pullback.tracing:trace",
    "value_and_grad": "pullback.transforms:value_and_grad",
    "vjp": "pullback.linearizing:vjp",
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
