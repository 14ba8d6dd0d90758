"""Types of the values that go through loops and branches, and how a value is given the type it needs there."""

from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue, innermost_recorder
from pullback.core.types import ArrayType, is_array_like, type_of
from pullback.errors import ControlFlowError
from pullback.rules import shapes

_KINDS = "bifc"


def leaf_type(leaf: Any, place: str, loop: str) -> ArrayType:
    """Type of a leaf that goes through a loop."""
    if isinstance(leaf, TracedValue):
        return traced_type(leaf)
    if not is_array_like(leaf):
        raise ControlFlowError(f"{loop}: {place} is a {type(leaf).__name__}; loops carry arrays, numbers and None")
    return type_of(leaf)


def traced_type(leaf: Any) -> ArrayType:
    """Type of a traced value; what stands for a Python number is weak."""
    if hasattr(leaf, "variable"):
        own: ArrayType = leaf.variable.type
        return own
    inner = getattr(leaf, "value", None)
    if isinstance(inner, TracedValue):
        return traced_type(inner)
    return type_of(inner) if type(inner) in (bool, int, float, complex) else ArrayType(leaf.shape, leaf.dtype)


def joined(one: ArrayType, other: ArrayType) -> ArrayType | None:
    """The type that values of both types can have: a Python number takes a dtype its kind can become."""
    if one == other:
        return one
    for number, type_ in ((one, other), (other, one)):
        if number.weak and not type_.shape and _becomes(number, type_):
            return type_
    return None


def _becomes(number: ArrayType, type_: ArrayType) -> bool:
    """True if a Python number can take a type without losing what kind of number it is."""
    kinds = [_KINDS.find("i" if dtype.kind == "u" else dtype.kind) for dtype in (number.dtype, type_.dtype)]
    return 0 <= kinds[0] <= kinds[1]


def in_words(type_: ArrayType) -> str:
    """The name of a type in errors."""
    if type_.weak:
        return f"a Python {({'b': 'bool', 'i': 'int', 'f': 'float'}).get(type_.dtype.kind, 'complex')}"
    return f"{type_.dtype} of shape {type_.shape}"


def as_type(value: Any, type_: ArrayType) -> Any:
    """A value in the type a loop gives it: Python numbers take a dtype, a single number is spread."""
    if not isinstance(value, TracedValue):
        if type_.weak:
            return value
        own = np.asarray(value, type_.dtype)
        return own[()] if own.shape == type_.shape else np.broadcast_to(own, type_.shape)
    before = traced_type(value)
    if before.shape != type_.shape:
        value = shapes.broadcast_to(value, shape=type_.shape)
    if (before.dtype, before.weak) != (type_.dtype, type_.weak):
        value = shapes.astype(value, dtype=type_.dtype)
    return value


def zeros(type_: ArrayType) -> Any:
    """Zeros of a type; under a recorder a value of its graph, so that no array has to be kept for them."""
    zero = type_.dtype.type(0)
    if not type_.shape:
        return zero
    recorder = innermost_recorder()
    if recorder is None:
        return np.broadcast_to(zero, type_.shape)
    return recorder.apply(shapes.broadcast_to, (zero,), {"shape": type_.shape})


def is_differentiable(type_: ArrayType) -> bool:
    """True if values of a type can move."""
    return type_.dtype.kind in "fc"


def moving_type(type_: ArrayType) -> ArrayType:
    """Type of tangents and cotangents of a value: that of the value, with a dtype where it is a Python number."""
    return ArrayType(type_.shape, type_.dtype)
