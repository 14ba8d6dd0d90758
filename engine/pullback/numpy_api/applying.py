"""Functions that take functions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.numpy_api.operands import as_operand, concrete, normalized_axis, number_of
from pullback.numpy_api.shapes import broadcast_to, expand_dims, moveaxis, reshape
from pullback.numpy_api.table import implements
from pullback.rules import gathering


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
    masks = [np.asarray(mask, bool) for mask in _conditions(condlist, x)]
    if len(funclist) == len(masks) + 1:
        masks.append(~np.any(masks, axis=0))
    if len(funclist) != len(masks):
        raise ValueError(f"numpy.piecewise got {len(masks)} conditions and {len(funclist)} functions")
    result = np.zeros(np.shape(x), x.dtype)[()]
    taken = np.zeros(np.shape(x), bool)
    for mask, function in zip(reversed(masks), reversed(list(funclist)), strict=True):
        positions = np.nonzero(np.atleast_1d(mask & ~taken))
        taken |= mask
        part = (reshape(x, (1,)) if np.ndim(x) == 0 else x)[positions]
        value = as_operand(function(part, *args, **kw) if callable(function) else function)
        value = broadcast_to(value, np.shape(part))
        shape = np.shape(x) or (1,)
        key = (gathering.ARRAY,) * len(positions)
        placed = gathering.scatter_add(value.astype(x.dtype), *positions, key=key, shape=shape, dtype=x.dtype)
        result = result + reshape(placed, np.shape(x))
    return result


def _conditions(condlist: Any, x: Any) -> list[Any]:
    single = isinstance(condlist, bool) or (not isinstance(condlist, list | tuple) and np.ndim(condlist) == np.ndim(x))
    return [concrete(mask, "numpy.piecewise") for mask in ([condlist] if single else condlist)]
