"""Choosing elements: by condition, by position, by mask."""

from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.numpy_api.keys import read
from pullback.numpy_api.masked_reads import is_unknown, positions_of
from pullback.numpy_api.operands import as_operand, concrete, normalized_axis, number_or_array
from pullback.numpy_api.shapes import astype, broadcast_to, in_line, ravel, reshape
from pullback.numpy_api.translations import implements, refuse
from pullback.rules import elementwise, gathering, rounding
from pullback.rules.diagonals import diagonal as diagonal_of
from pullback.rules.diagonals import lower, on_diagonal, upper
from pullback.rules.joining import along


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("numpy.where takes both branches or neither: where(c, x, y)")
    return elementwise.where(*(number_or_array(part) for part in (condition, x, y)))


@implements(np.nonzero)
def nonzero(a: Any) -> Any:
    if is_unknown(a):
        return positions_of(a)
    return np.nonzero(concrete(a, "numpy.nonzero"))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    if is_unknown(a) and np.ndim(a) == 1:
        return positions_of(a)[0]
    return np.flatnonzero(concrete(a, "numpy.flatnonzero"))


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    return np.argwhere(concrete(a, "numpy.argwhere"))


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError("numpy.select takes as many choices as conditions, and at least one")
    chosen = number_or_array(default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        chosen = where(condition, choice, chosen)
    return chosen


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    refuse("numpy.choose", out=out)
    options = np.broadcast_arrays(*(as_operand(choice) for choice in choices))
    stacked = np.stack(options)
    a = as_operand(a)
    shape = np.broadcast_shapes(np.shape(a), np.shape(stacked)[1:])
    stacked = broadcast_to(
        reshape(stacked, (len(options), *[1] * (len(shape) - np.ndim(stacked) + 1), *np.shape(stacked)[1:])),
        (len(options), *shape),
    )
    positions = reshape(broadcast_to(in_range(a, len(options), mode), shape), (1, *shape))
    return reshape(gathering.take_along(stacked, positions, axis=0), shape)


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    refuse("numpy.take", out=out)
    a, place = in_line(a, axis)
    indices = int(indices) if issubclass(type(indices), int | np.integer) else as_operand(indices)
    return read(a, (*[slice(None)] * place, in_range(indices, np.shape(a)[place], mode)))


def in_range(positions: Any, length: int, mode: str) -> Any:
    """Positions that an axis has, by NumPy's three modes; out of range is NumPy's own error."""
    if mode == "raise":
        return positions
    if mode == "wrap":
        wrapped = rounding.remainder(positions, length)
    elif mode == "clip":
        wrapped = elementwise.minimum(elementwise.maximum(positions, 0), length - 1)
    else:
        raise ValueError(f"mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    return int(wrapped) if issubclass(type(positions), int) else wrapped


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    arr, place = in_line(arr, axis)
    indices = as_operand(indices)
    if np.ndim(indices) != np.ndim(arr):
        raise ValueError("numpy.take_along_axis needs indices and array of one number of dimensions")
    others = [
        np.broadcast_shapes((own,), (read_,))[0] if i != place else -1
        for i, (own, read_) in enumerate(zip(np.shape(arr), np.shape(indices), strict=True))
    ]

    def stretched(x: Any) -> Any:
        return broadcast_to(x, tuple(np.shape(x)[i] if n == -1 else n for i, n in enumerate(others)))

    return gathering.take_along(stretched(arr), stretched(indices), axis=place)


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    refuse("numpy.compress", out=out)
    kept = np.flatnonzero(concrete(as_operand(condition), "numpy.compress"))
    a, place = (ravel(as_operand(a)), 0) if axis is None else (as_operand(a), normalized_axis(axis, np.ndim(a)))
    return read(a, along(place, kept))


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    return read(ravel(as_operand(arr)), np.flatnonzero(concrete(as_operand(condition), "numpy.extract")))


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    arr, place = (ravel(as_operand(arr)), 0) if axis is None else (as_operand(arr), normalized_axis(axis, np.ndim(arr)))
    kept = np.delete(np.arange(np.shape(arr)[place]), obj)
    return read(arr, along(place, kept))


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Array and values are joined and read in the order that inserting their positions gives."""
    arr, values = as_operand(arr), as_operand(values)
    values = astype(values, arr.dtype)
    arr, place = (ravel(arr), 0) if axis is None else (arr, normalized_axis(axis, np.ndim(arr)))
    length = np.shape(arr)[place]
    many = np.ndim(obj) != 0 or isinstance(obj, slice)
    count = np.size(np.arange(length)[obj]) if isinstance(obj, slice) else np.size(np.asarray(obj))
    if not many and np.ndim(values) and (np.ndim(arr) > 1 or np.size(values) > 1):  # one place for all the values
        if np.ndim(arr) > 1 and np.ndim(values) < np.ndim(arr):
            values = reshape(values, (*[1] * (np.ndim(arr) - np.ndim(values)), *np.shape(values)))
        values = np.moveaxis(values, 0, place) if np.ndim(arr) > 1 else ravel(values)
        count = np.shape(values)[place]
    shape = tuple(count if i == place else n for i, n in enumerate(np.shape(arr)))
    values = broadcast_to(values, shape)
    order = np.insert(np.arange(length), obj, np.arange(length, length + count))
    return read(np.concatenate([arr, values], axis=place), along(place, order))


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    refuse("numpy.trim_zeros", axis=axis)
    kept = np.flatnonzero(concrete(filt, "numpy.trim_zeros"))
    if np.ndim(filt) != 1:
        raise TracingError("numpy.trim_zeros of a traced value takes a vector")
    if not kept.size:
        return filt[:0]
    start = int(kept[0]) if "f" in trim.lower() else 0
    stop = int(kept[-1]) + 1 if "b" in trim.lower() else np.size(filt)
    return filt[start:stop]


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    remedy = "; of a known length n write counts = pb.numpy.zeros(n); np.add.at(counts, x, weights)"
    positions = np.asarray(concrete(x, "numpy.bincount", remedy))
    if weights is None:
        return np.bincount(positions, None, minlength)
    length = max(int(positions.max()) + 1 if positions.size else 0, minlength)
    weights = as_operand(weights)
    dtype = np.dtype(np.float64)
    return gathering.scatter_add(weights, positions, key=(gathering.ARRAY,), shape=(length,), dtype=dtype)


# --- diagonals and triangles -----------------------------------------------------------------------------------------
@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    ndim = np.ndim(a)
    first, second = normalized_axis(axis1, ndim), normalized_axis(axis2, ndim)
    if first == second:
        raise ValueError("numpy.diagonal: axis1 and axis2 cannot be the same")
    return diagonal_of(a, offset=int(offset), axis1=first, axis2=second)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    if np.ndim(v) == 1:
        side = np.size(v) + abs(int(k))
        return on_diagonal(v, shape=(side, side), offset=int(k), axis1=0, axis2=1)
    if np.ndim(v) == 2:
        return diagonal(v, k)
    raise ValueError(f"numpy.diag takes a vector or a matrix, not {np.ndim(v)} dimensions")


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    return diag(ravel(as_operand(v)), k)


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Any:
    return lower(broadcast_to(m, (np.size(m), np.size(m))) if np.ndim(m) == 1 else m, k=int(k))


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Any:
    return upper(broadcast_to(m, (np.size(m), np.size(m))) if np.ndim(m) == 1 else m, k=int(k))
