"""The two transforms everything else is made of: `make_vjp(f, x)` and `make_jvp(f, x)`, on values and containers."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import trees
from pullback.compat.autograd.aligned import leaves_like
from pullback.compat.autograd.primitives import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    primitive_jvps,
    primitive_vjps,
)
from pullback.compat.autograd.vector_spaces import VSpace, vspace
from pullback.core.primitive import TracedValue
from pullback.core.types import dtype_of
from pullback.transforms.linearization import Linearization, jvp

__all__ = [
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "make_jvp",
    "make_vjp",
    "primitive",
    "primitive_jvps",
    "primitive_vjps",
    "vspace",
]


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Give `(vjp, fun(x))`; `vjp(g)` pulls a cotangent back, as often as it is called."""
    linear = Linearization(fun, (x,))
    if not any(isinstance(output, TracedValue) and output.traced_by is linear.tape for output in linear.outputs):
        warnings.warn("Output seems independent of input.", stacklevel=4)
    value = linear.value()

    def vjp(g: Any) -> Any:
        y_bars = [
            None if y_bar is None else _of_the_kind(y_bar, leaf)
            for y_bar, leaf in zip(leaves_like(value, g), linear.values, strict=True)
        ]
        return linear.arguments(linear.pull(y_bars))[0]

    return vjp, value


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Give `jvp`; `jvp(v)` is `(fun(x), tangent)` where x moves along v."""
    leaves, rebuild = trees.flatten(x)

    def pushed(v: Any) -> tuple[Any, Any]:
        tangents = (_of_the_kind(dx, leaf) for dx, leaf in zip(leaves_like(x, v), leaves, strict=True))
        value, tangent = jvp(fun, (x,), (rebuild(tangents),))
        return value, tangent

    return pushed


def _of_the_kind(vector: Any, value: Any) -> Any:
    """A vector in the dtype of what it belongs to: the real part for a real one."""
    if isinstance(vector, TracedValue):
        return vector
    dtype = dtype_of(value)
    if dtype.kind not in "fc":
        return vector
    return np.asarray(np.real(vector) if dtype.kind == "f" else vector, dtype)[()]
