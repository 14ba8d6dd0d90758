"""Traced values with a concrete value: the common part of the tape and the forward sweep."""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from pullback.core.primitive import Primitive, TracedValue, current
from pullback.core.types import dtype_of
from pullback.errors import TracingError
from pullback.numpy_api.tracer import Tracer, lack


class ConcreteTracer(Tracer):
    """A value under a trace. Python's control flow may look at it: the trace follows the branch that is taken."""

    __slots__ = ("value",)
    has_value: ClassVar[bool] = True
    value: Any

    @property  # type: ignore[misc]  # as in Tracer
    def __class__(self) -> type:
        """The class of the value."""
        kind: type = self.value.__class__
        return kind

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        shape: tuple[int, ...] = np.shape(self.value)
        if not shape:
            lack(self, "shape")
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the value."""
        if not issubclass(type(self.value), np.ndarray | np.generic):
            lack(self, "dtype")
        return dtype_of(self.value)

    def __bool__(self) -> bool:
        now = self.current()
        return bool(self.value if now is self else now)

    def __int__(self) -> int:
        now = self.current()
        return int(self.value if now is self else now)


def memory_of(value: Any) -> Any:
    """The array behind traced values that have theirs at hand; anything else is itself."""
    value = current(value)
    while isinstance(value, ConcreteTracer):
        value = current(value.value)
    return value


def is_in_memory(value: Any) -> bool:
    """True of an array of the host or of a device, and of no other traced value."""
    return value.on_device if isinstance(value, TracedValue) else issubclass(type(value), np.ndarray)


def may_share_memory(x: Any, y: Any) -> bool:
    """True if two arrays, both of the host or both of a device, may have an element in common."""
    if isinstance(x, TracedValue):
        return x.on_device and bool(x.may_share_memory(y))  # type: ignore[attr-defined] # of device arrays
    both = issubclass(type(x), np.ndarray) and issubclass(type(y), np.ndarray)
    return both and np.may_share_memory(x, y)


def refuse_other_kinds(primitive: Primitive, results: Iterable[Any]) -> None:
    """Refuse results that are neither numbers nor truth values: objects, times, text. What they hold may well move."""
    if not primitive.moves:
        return
    for result in results:
        if kind_of(result) not in "biufc":
            raise TracingError(
                f"{primitive.name} of a traced value gave {type(result).__name__} of dtype {dtype_of(result)}, which has "
                "no derivative; convert arrays of objects, times or text to floating-point numbers first"
            )


def kind_of(value: Any) -> str:
    """NumPy's letter for the kind of a value's dtype."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        kind: str = dtype.kind
        return kind
    return (
        "f"
        if issubclass(type(value), float)
        else "c"
        if issubclass(type(value), complex)
        else "i"
        if issubclass(type(value), int)
        else "O"
    )
