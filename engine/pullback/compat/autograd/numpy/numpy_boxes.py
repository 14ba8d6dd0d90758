"""Traced arrays under the name that programs test for."""

from pullback.numpy_api.tracer import Tracer as ArrayBox

__all__ = ["ArrayBox"]
