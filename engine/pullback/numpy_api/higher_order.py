"""Functions that take functions: `apply_along_axis`, `piecewise` and others."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from pullback.numpy_api.keys import read
from pullback.numpy_api.masked_reads import MaskedRead, is_unknown, masked
from pullback.numpy_api.operands import as_operand, normalized_axis, number_of
from pullback.numpy_api.shapes import astype, broadcast_to, expand_dims, moveaxis, reshape
from pullback.numpy_api.storing import updated
from pullback.numpy_api.translations import implements


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    place = normalized_axis(axis, np.ndim(arr))
    lines = moveaxis(arr, place, -1)
    outer = np.shape(lines)[:-1]
    flat = reshape(lines, (number_of(outer), np.shape(lines)[-1]))
    results = [as_operand(func1d(flat[row], *args, **kwargs)) for row in range(np.shape(flat)[0])]
    stacked = np.stack(results)
    inner = np.shape(stacked)[1:]
    together = reshape(stacked, (*outer, *inner))
    ends = tuple(range(len(outer), len(outer) + len(inner)))
    return moveaxis(together, ends, tuple(range(place, place + len(inner)))) if inner else together


@implements(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    a = as_operand(a)
    for axis in axes if np.ndim(axes) else (axes,):
        place = normalized_axis(axis, np.ndim(a))
        result = func(a, place)
        a = result if np.ndim(result) == np.ndim(a) else expand_dims(result, place)
    return a


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Each function sees its own elements only, as in NumPy; the last condition that holds decides."""
    x = as_operand(x)
    single = isinstance(condlist, bool) or (not isinstance(condlist, list | tuple) and np.ndim(condlist) == np.ndim(x))
    masks = [astype(as_operand(mask), np.bool_) for mask in ([condlist] if single else condlist)]
    if len(funclist) == len(masks) + 1:
        masks.append(~reduce(np.logical_or, masks))
    if len(funclist) != len(masks):
        raise ValueError(f"numpy.piecewise got {len(masks)} conditions and {len(funclist)} functions")
    shape = np.shape(x)
    line = reshape(x, shape or (1,))
    result = broadcast_to(np.zeros((), x.dtype), np.shape(line))
    for mask, function in zip(masks, funclist, strict=True):
        key = broadcast_to(mask, shape) if shape else reshape(mask, (1,))
        value = function
        if callable(function):
            part = masked(line, key) if is_unknown(key) else read(line, key)
            if type(part) is not MaskedRead and not np.size(part):
                continue
            value = function(part, *args, **kw)
        result = updated(result, key, value)
    return reshape(result, shape)
