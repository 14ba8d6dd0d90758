"""numpy.pad: an axis at a time, what is added is made of slices of the array itself."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.errors import TracingError
from pullback.numpy_api.joining import concatenate
from pullback.numpy_api.keys import read
from pullback.numpy_api.operands import as_operand
from pullback.numpy_api.shapes import astype, broadcast_to
from pullback.numpy_api.translations import implements
from pullback.rules.joining import along

_REPEATING = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": np.max,
    "minimum": np.min,
    "mean": np.mean,
    "median": np.median,
}


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    if not isinstance(mode, str):
        raise TracingError("numpy.pad with a function writes into an array; name one of NumPy's modes")
    array = as_operand(array)
    widths = _pairs(pad_width, np.ndim(array))
    constants = _pairs(keywords.pop("constant_values", 0), np.ndim(array))
    reflect_type = keywords.pop("reflect_type", "even")
    for option, value in keywords.items():
        if value is not None:
            raise TracingError(f"numpy.pad(…, {option}=…) cannot be differentiated; leave {option} out")
    for axis, (before, after) in enumerate(widths):
        if before < 0 or after < 0:
            raise ValueError("numpy.pad cannot take negative widths")
        if not before and not after:
            continue
        if mode == "constant":
            array = _with_constants(array, axis, (before, after), constants[axis])
        elif mode in _REPEATING and reflect_type == "even":
            # NumPy pads the positions, and the array is read by them: every mode and any width, no formula twice.
            order = np.pad(np.arange(np.shape(array)[axis]), (before, after), mode=mode)  # type: ignore[call-overload] # the mode is checked above
            array = read(array, along(axis, order))
        elif mode in _STATISTICS:
            whole = _in_dtype_of(array, _STATISTICS[mode](array, axis=axis, keepdims=True))
            array = concatenate([_stretched(whole, axis, before), array, _stretched(whole, axis, after)], axis)
        else:
            raise TracingError(
                f"numpy.pad with mode={mode!r} and reflect_type={reflect_type!r} has no rule in this engine; "
                f"use constant or one of {', '.join([*_REPEATING, *_STATISTICS])}"
            )
    return array


def _with_constants(array: Any, axis: int, widths: tuple[int, int], constants: tuple[Any, Any]) -> Any:
    def block(width: int, value: Any) -> Any:
        shape = tuple(width if place == axis else length for place, length in enumerate(np.shape(array)))
        if isinstance(value, TracedValue):
            return broadcast_to(astype(value, array.dtype), shape)
        return np.full(shape, value, array.dtype)

    return concatenate([block(widths[0], constants[0]), array, block(widths[1], constants[1])], axis)


def _in_dtype_of(array: Any, whole: Any) -> Any:
    """Means of whole numbers are rounded."""
    if whole.dtype == array.dtype:
        return whole
    return astype(np.round(whole) if array.dtype.kind in "iu" else whole, array.dtype)


def _stretched(x: Any, axis: int, width: int) -> Any:
    return broadcast_to(x, tuple(width if place == axis else n for place, n in enumerate(np.shape(x))))


def _pairs(given: Any, ndim: int) -> list[tuple[Any, Any]]:
    """One (before, after) per axis, from NumPy's shorthands."""
    if isinstance(given, dict):
        pairs: list[tuple[Any, Any]] = [(0, 0)] * ndim
        for axis, width in given.items():
            pairs[axis] = (width, width) if np.ndim(width) == 0 else (width[0], width[1])
        return pairs
    if np.ndim(given) == 0:
        return [(given, given)] * ndim
    rows = list(given)
    if all(np.ndim(row) == 0 for row in rows):
        before, after = rows if len(rows) == 2 else rows * 2
        return [(before, after)] * ndim
    if len(rows) == 1:
        rows *= ndim
    if len(rows) != ndim:
        raise ValueError(f"numpy.pad needs widths for {ndim} axes, got {len(rows)}")
    return [(row[0], row[-1]) for row in rows]
