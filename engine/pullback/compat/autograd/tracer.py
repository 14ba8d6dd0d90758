"""Traced values under the names that programs ask about them."""

from typing import Any

from pullback.compat.autograd.primitives import getval, notrace_primitive, primitive
from pullback.numpy_api.tracer import Tracer as Box

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive"]


def isbox(x: Any) -> bool:
    """Whether a value is traced."""
    return isinstance(x, Box)
