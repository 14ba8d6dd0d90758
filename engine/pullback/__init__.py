"""An automatic-differentiation engine for NumPy functions, with fused and stateful rules.

    import numpy as np, pullback as pb
    def loss(w, x, b): return np.sum(np.tanh(w @ x + b) ** 2)
    value, (dw, db) = pb.value_and_grad(loss, wrt=("w", "b"))(w, x, b)

Names are loaded when they are first used: importing the package imports NumPy and nothing else.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback import contexts, debug, errors, inplace, nn, numpy, optim, rule, scipy, testing
    from pullback.backends.native.threads import threads
    from pullback.blocks import Block
    from pullback.compiling.plan import compile  # noqa: A004 (the public name)
    from pullback.compiling.tiered import grad, value_and_grad
    from pullback.compiling.tracing import trace
    from pullback.control.checkpoints import checkpoint
    from pullback.control.conditionals import cond, switch
    from pullback.control.loops import fori_loop, while_loop
    from pullback.control.scans import scan
    from pullback.custom import primitive
    from pullback.devices import device, fetch, precision, put
    from pullback.packing import pack
    from pullback.tiers import TIERS, tier
    from pullback.transforms.batching import vmap
    from pullback.transforms.constants import cut, stop_gradient, uncut
    from pullback.transforms.elementwise_maps import elementwise
    from pullback.transforms.jacobians import hessian, hvp, jacobian
    from pullback.transforms.linearization import jvp, linearize, vjp
    from pullback.trees import register_pytree_node, tree_map

__all__ = [
    "TIERS",
    "Block",
    "checkpoint",
    "compile",
    "cond",
    "contexts",
    "cut",
    "debug",
    "device",
    "elementwise",
    "errors",
    "fetch",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "inplace",
    "jacobian",
    "jvp",
    "linearize",
    "nn",
    "numpy",
    "optim",
    "pack",
    "precision",
    "primitive",
    "put",
    "register_pytree_node",
    "rule",
    "scan",
    "scipy",
    "stop_gradient",
    "switch",
    "testing",
    "threads",
    "tier",
    "trace",
    "tree_map",
    "uncut",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

_HOMES = {
    "Block": "pullback.blocks:Block",
    "TIERS": "pullback.tiers:TIERS",
    "checkpoint": "pullback.control.checkpoints:checkpoint",
    "compile": "pullback.compiling.plan:compile",
    "cond": "pullback.control.conditionals:cond",
    "contexts": "pullback.contexts",
    "cut": "pullback.transforms.constants:cut",
    "debug": "pullback.debug",
    "device": "pullback.devices:device",
    "elementwise": "pullback.transforms.elementwise_maps:elementwise",
    "errors": "pullback.errors",
    "fetch": "pullback.devices:fetch",
    "fori_loop": "pullback.control.loops:fori_loop",
    "grad": "pullback.compiling.tiered:grad",
    "hessian": "pullback.transforms.jacobians:hessian",
    "hvp": "pullback.transforms.jacobians:hvp",
    "inplace": "pullback.inplace",
    "jacobian": "pullback.transforms.jacobians:jacobian",
    "jvp": "pullback.transforms.linearization:jvp",
    "linearize": "pullback.transforms.linearization:linearize",
    "nn": "pullback.nn",
    "numpy": "pullback.numpy",
    "optim": "pullback.optim",
    "pack": "pullback.packing:pack",
    "precision": "pullback.devices:precision",
    "primitive": "pullback.custom:primitive",
    "register_pytree_node": "pullback.trees:register_pytree_node",
    "put": "pullback.devices:put",
    "rule": "pullback.rule",
    "scan": "pullback.control.scans:scan",
    "scipy": "pullback.scipy",
    "stop_gradient": "pullback.transforms.constants:stop_gradient",
    "switch": "pullback.control.conditionals:switch",
    "testing": "pullback.testing",
    "threads": "pullback.backends.native.threads:threads",
    "tier": "pullback.tiers:tier",
    "trace": "pullback.compiling.tracing:trace",
    "tree_map": "pullback.trees:tree_map",
    "uncut": "pullback.transforms.constants:uncut",
    "value_and_grad": "pullback.compiling.tiered:value_and_grad",
    "vjp": "pullback.transforms.linearization:vjp",
    "vmap": "pullback.transforms.batching:vmap",
    "while_loop": "pullback.control.loops:while_loop",
}

#: Names of JAX, autograd and torch, and what does the same here.
_ELSEWHERE = {
    "jit": "pb.compile(f)",
    "jacfwd": 'pb.jacobian(f, mode="forward")',
    "jacrev": 'pb.jacobian(f, mode="reverse")',
    "associative_scan": "pb.scan",
    "custom_gradient": "pb.primitive, whose pulls() or pull() takes the reverse rule",
    "device_put": "pb.put(x)",
    "make_jaxpr": "pb.compile(f).explain() after a call, or pb.trace",
    "ravel_pytree": "pb.pack",
    "custom_vjp": "pb.primitive, whose pulls() or pull() takes the reverse rule",
    "custom_jvp": "pb.primitive, whose pushes() or push() takes the forward rule",
    "defvjp": "pb.primitive, whose pulls() takes a map for each argument",
    "elementwise_grad": "pb.vjp(f, x)[1](numpy.ones_like(x))",
    "hessian_vector_product": "pb.hvp(f, x, v)",
    "lax": "pb.scan, pb.fori_loop, pb.while_loop, pb.cond and pb.switch",
    "no_grad": "pb.stop_gradient(x)",
    "pmap": "pb.vmap, and pb.threads",
    "random": "pb.numpy.random",
    "remat": "pb.checkpoint",
    "tree": "pb.tree_map and pb.register_pytree_node",
    "tree_util": "pb.tree_map and pb.register_pytree_node",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        ours = f"; use {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"module 'pullback' has no attribute {name!r}{ours}")
    module, _, attribute = home.partition(":")
    value = importlib.import_module(module)
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
