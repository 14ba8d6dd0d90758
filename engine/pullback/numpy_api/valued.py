"""Traced values that have their value at hand: what the tape and the forward sweep have in common."""

from typing import Any

import numpy as np

from pullback.ir.types import dtype_of
from pullback.numpy_api.tracer import Tracer


class ValuedTracer(Tracer):
    """A value under a trace. Python's control flow may look at it: the trace follows the branch that is taken."""

    __slots__ = ("value",)
    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return np.shape(self.value)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the value."""
        return dtype_of(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)


def memory_of(value: Any) -> Any:
    """The array behind traced values that have theirs at hand; anything else is itself."""
    while isinstance(value, ValuedTracer):
        value = value.value
    return value


def kind_of(value: Any) -> str:
    """NumPy's letter for the kind of a value's dtype."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        kind: str = dtype.kind
        return kind
    return "f" if isinstance(value, float) else "c" if isinstance(value, complex) else "i"
