"""New arrays after the model of a traced one, between traced ends, or on a grid."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.errors import TracingError
from pullback.numpy_api.memory_order import in_c_order
from pullback.numpy_api.operands import as_operand
from pullback.numpy_api.shapes import astype, broadcast_to, moveaxis, reshape
from pullback.numpy_api.translations import implements, refuse
from pullback.rules import elementwise, exponential, rounding

_ORDINARY = {"order": "K", "subok": True, "device": None}


@implements(np.zeros_like)
def zeros_like(a: Any, dtype: Any = None, **keywords: Any) -> Any:
    """Zeros do not depend on their model, only what is stored into them later."""
    return _new(np.zeros, a, dtype, keywords)


@implements(np.ones_like)
def ones_like(a: Any, dtype: Any = None, **keywords: Any) -> Any:
    return _new(np.ones, a, dtype, keywords)


@implements(np.empty_like)
def empty_like(prototype: Any, /, dtype: Any = None, **keywords: Any) -> Any:
    return _new(np.zeros, prototype, dtype, keywords)


def _new(make: Callable[..., Any], a: Any, dtype: Any, keywords: dict[str, Any]) -> Any:
    shape = keywords.pop("shape", None)
    refuse("numpy.zeros_like and its like", **{name: v for name, v in keywords.items() if v != _ORDINARY.get(name)})
    order = "C" if in_c_order(a) else "F"
    return make(np.shape(a) if shape is None else shape, a.dtype if dtype is None else dtype, order)


@implements(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, **keywords: Any) -> Any:
    model = as_operand(a)
    shape = keywords.pop("shape", None)
    refuse("numpy.full_like", **{name: v for name, v in keywords.items() if v != _ORDINARY.get(name)})
    value = astype(as_operand(fill_value), model.dtype if dtype is None else dtype)
    return broadcast_to(value, np.shape(model) if shape is None else shape)


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    refuse("numpy.linspace", device=device)
    ends = [_part_in_promotion(x) for x in (start, stop)]
    start, stop = (
        astype(x, np.float64) if isinstance(end, np.dtype) and end.kind in "biu" else x  # uint8(77) - uint8(94) is 239
        for x, end in zip((as_operand(start), as_operand(stop)), ends, strict=True)
    )
    count, pieces = int(num), int(num) - 1 if endpoint else int(num)
    wide = np.result_type(*ends, float(count))
    ndim = len(np.broadcast_shapes(np.shape(start), np.shape(stop)))
    numbers = reshape(np.arange(count, dtype=np.float64), (count, *[1] * ndim))
    step = (stop - start) / max(pieces, 1)
    line = start + step * numbers
    if endpoint and count > 1:
        line = elementwise.where(numbers == pieces, stop, line)
    if np.issubdtype(dtype, np.integer):
        line = rounding.floor(line)
    line = moveaxis(astype(line, wide if dtype is None else dtype), 0, axis)
    return (line, step if pieces > 0 else np.nan) if retstep else line


def _part_in_promotion(x: Any) -> Any:
    """The dtype of an operand; of a Python number, traced or not, one that takes part by its kind alone."""
    return x.__class__(0) if x.__class__ in (bool, int, float, complex) else as_operand(x).dtype


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    powers = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return powers if dtype is None else astype(powers, dtype)


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    start, stop = as_operand(start), as_operand(stop)
    if start.dtype.kind == "c" or stop.dtype.kind == "c":
        raise TracingError("numpy.geomspace between complex ends has no rule in this engine")
    start, stop = astype(start, np.float64), astype(stop, np.float64)  # as NumPy, whatever the ends are
    signs = np.sign(start)
    line = exponential.exp(linspace(np.log(start * signs), np.log(stop * signs), num, endpoint, axis=axis))
    line = line * signs if np.ndim(signs) == 0 else line * np.expand_dims(signs, axis)
    return line if dtype is None else astype(line, dtype)


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    del copy
    if indexing not in ("xy", "ij"):
        raise ValueError(f"numpy.meshgrid knows indexing 'xy' and 'ij', not {indexing!r}")
    order = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        order[0], order[1] = 1, 0
    lines = [
        reshape(as_operand(x), tuple(np.size(x) if place == axis else 1 for place in range(len(xi))))
        for x, axis in zip(xi, order, strict=True)
    ]
    if sparse:
        return tuple(lines)
    shape = np.broadcast_shapes(*(np.shape(line) for line in lines))
    return tuple(broadcast_to(line, shape) for line in lines)


@implements(np.result_type)
def result_type(*operands: Any) -> Any:
    return np.result_type(*(_dtype_or_itself(operand) for operand in operands))


def _dtype_or_itself(x: Any) -> Any:
    traced: Any = x
    return traced.dtype if isinstance(x, TracedValue) else x


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(_dtype_or_itself(from_), _dtype_or_itself(to), casting)


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*(np.empty(0, as_operand(array).dtype) for array in arrays))


@implements(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> Any:
    return a.dtype


@implements(np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require)
def array(a: Any, dtype: Any = None, *args: Any, **keywords: Any) -> Any:
    """An array like a traced value, made by `like=`, the only way in which NumPy asks one for it."""
    del args
    keywords.pop("like", None)
    keywords.pop("copy", None)
    refuse("numpy.array(like=…)", **keywords)
    made = as_operand(a) if not isinstance(a, list | tuple) else _nested(a)
    return made if dtype is None else astype(made, dtype)


def _nested(part: Any) -> Any:
    if not isinstance(part, list | tuple):
        return as_operand(part)
    return np.stack([_nested(inner) for inner in part]) if part else np.zeros(0)


@implements(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    return np.tril_indices(np.shape(arr)[-2], k, np.shape(arr)[-1])


@implements(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    return np.triu_indices(np.shape(arr)[-2], k, np.shape(arr)[-1])


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    return np.diag_indices_from(np.broadcast_to(0, np.shape(arr)))


@implements(np.array_repr, np.array_str)
def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    del max_line_width, precision, suppress_small
    return repr(arr)
