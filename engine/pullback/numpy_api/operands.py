"""Normal forms of arguments that callers may write in many ways."""

from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue, current, watching
from pullback.errors import NeedsValueError, TracingError

NONE = np._NoValue  # noqa: SLF001 (NumPy's own mark of an option that was not given)


def as_operand(x: Any) -> Any:
    """An array or a traced value as it is; a list or a Python number as an array."""
    return x if isinstance(x, TracedValue | np.ndarray | np.generic) else np.asarray(x)


def number_or_array(x: Any) -> Any:
    """Convert to an operand, but keep Python numbers, which take part in promotion by their kind alone."""
    return x if issubclass(type(x), bool | int | float | complex) else as_operand(x)


def normalized_axis(axis: Any, ndim: int) -> int:
    """One axis, non-negative."""
    return int(np.lib.array_utils.normalize_axis_index(axis, ndim))


def number_of(lengths: Any) -> int:
    """Product of lengths: how many elements."""
    return int(np.prod(tuple(lengths), dtype=np.int64))


def concrete(x: Any, function: str, remedy: str = "") -> Any:
    """The plain value, for results whose shape depends on values; in plans it has to be one that the plan can be held to."""
    x = current(x)
    if isinstance(x, np.ndarray) and not isinstance(x, TracedValue):
        return x
    if any(trace.records_types for trace in watching()):
        while isinstance(x, TracedValue) and x.has_value:
            x = current(x.value)  # type: ignore[attr-defined]  # it has one
        held = x.held() if isinstance(x, TracedValue) else None
        if held is None:
            raise needs_values(function, remedy)
        return held
    while isinstance(x, TracedValue):
        if x.on_device:
            return x.fetched()
        if not hasattr(x, "value"):
            raise TracingError(f"{function} gives an array whose shape differs between the examples of a batch{remedy}")
        x = current(x.value)
    return x


def needs_values(function: str, remedy: str = "") -> NeedsValueError:
    """The error where a plan would have arrays of another shape on each call."""
    return NeedsValueError(
        f"{function} gives an array whose shape depends on values, which cannot be compiled; compute it outside of the "
        f"function, and pass it{remedy}"
    )
