"""Running sums and products, and their opposites: differences and slopes."""

from typing import Any

import numpy as np

from pullback.numpy_api.joining import concatenate
from pullback.numpy_api.operands import NONE, as_operand, normalized_axis
from pullback.numpy_api.reductions import sum_
from pullback.numpy_api.shapes import astype, broadcast_to, in_line, ravel, reshape
from pullback.numpy_api.translations import implements, refuse
from pullback.rules import cumulative, gathering, logic
from pullback.rules import elementwise as e
from pullback.rules.joining import along


@implements(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    refuse("numpy.cumsum", out=out)
    a, axis = in_line(a if dtype is None else astype(a, dtype), axis)
    y = cumulative.cumsum(a, axis=axis)
    return y if dtype is None else astype(y, dtype)


@implements(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    refuse("numpy.cumprod", out=out)
    a, axis = in_line(a if dtype is None else astype(a, dtype), axis)
    y = cumulative.cumprod(a, axis=axis)
    return y if dtype is None else astype(y, dtype)


@implements(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return _from_start(cumsum(x, axis, dtype, out), axis, 0, include_initial=include_initial)


@implements(np.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return _from_start(cumprod(x, axis, dtype, out), axis, 1, include_initial=include_initial)


def _from_start(y: Any, axis: Any, start: int, *, include_initial: bool) -> Any:
    if not include_initial:
        return y
    axis = 0 if axis is None else normalized_axis(axis, np.ndim(y))
    shape = [1 if place == axis else length for place, length in enumerate(np.shape(y))]
    return concatenate([np.full(shape, start, y.dtype), y], axis)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumsum(e.where(logic.isnan(a), 0, a), axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumprod(e.where(logic.isnan(a), 1, a), axis, dtype, out)


def sum_segments(a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """`numpy.add.reduceat`: sums from each index to the next; of an index that is followed by none larger, its element."""
    refuse("numpy.add.reduceat", out=out)
    a = as_operand(a) if dtype is None else astype(as_operand(a), dtype)
    axis = normalized_axis(axis, np.ndim(a))
    starts, length = np.asarray(indices, np.intp), np.shape(a)[axis]
    if starts.size and not 0 <= starts.min() <= starts.max() < length:
        raise IndexError(
            f"numpy.add.reduceat: an index of {starts.tolist()} is out of bounds for axis {axis} of size {length}"
        )
    ends = np.maximum(np.append(starts, length)[1:], starts + 1)
    read = np.concatenate([np.arange(start, end) for start, end in zip(starts, ends, strict=True)] or [starts])
    segments = np.repeat(np.arange(starts.size), ends - starts)
    whole = (slice(None),) * axis
    shape = (*np.shape(a)[:axis], starts.size, *np.shape(a)[axis + 1 :])
    rows = gathering.gather(a, read, key=(*whole, gathering.ARRAY))
    return gathering.scatter_add(rows, segments, key=(*whole, gathering.ARRAY), shape=shape, dtype=a.dtype)


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NONE, append: Any = NONE) -> Any:
    if n < 0:
        raise ValueError(f"numpy.diff takes differences n times, n = {n} is negative")
    a = as_operand(a)
    if np.ndim(a) == 0:
        raise ValueError("numpy.diff needs an array of at least one dimension")
    axis = normalized_axis(axis, np.ndim(a))
    if n == 0:
        return a
    ends = [_end(end, a, axis) for end in (prepend, a, append) if end is not NONE]
    a = concatenate(ends, axis) if len(ends) > 1 else a
    for _ in range(n):
        later, earlier = a[along(axis, slice(1, None))], a[along(axis, slice(None, -1))]
        a = logic.not_equal(later, earlier) if a.dtype.kind == "b" else later - earlier
    return a


def _end(end: Any, a: Any, axis: int) -> Any:
    end = as_operand(end)
    if np.ndim(end):
        return end
    return broadcast_to(end, tuple(1 if i == axis else n for i, n in enumerate(np.shape(a))))


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat = ravel(as_operand(ary))
    parts = [to_begin, flat[1:] - flat[:-1], to_end]
    joined = [ravel(as_operand(part)) for part in parts if part is not None]
    return concatenate(joined) if len(joined) > 1 else joined[0]


@implements(np.trapezoid, getattr(np, "trapz", np.trapezoid))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = as_operand(y)
    axis = normalized_axis(axis, np.ndim(y))
    if x is not None:
        x = as_operand(x)
        dx = diff(x) if np.ndim(x) == 1 else diff(x, axis=axis)
        if np.ndim(x) == 1:
            dx = reshape(dx, (np.size(dx), *[1] * (np.ndim(y) - axis - 1)))
    middles = (y[along(axis, slice(1, None))] + y[along(axis, slice(None, -1))]) / 2.0
    return sum_(dx * middles, axis)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    f = as_operand(f)
    ndim = np.ndim(f)
    axes = (
        tuple(range(ndim))
        if axis is None
        else tuple(normalized_axis(one, ndim) for one in (axis if isinstance(axis, tuple | list) else (axis,)))
    )
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"numpy.gradient takes one spacing or one per axis ({len(axes)}), got {len(varargs)}")
    if edge_order not in (1, 2):
        raise ValueError(f"numpy.gradient knows edge_order 1 and 2, not {edge_order}")
    spacings = varargs * len(axes) if len(varargs) == 1 and np.ndim(varargs[0]) == 0 else varargs or (1.0,) * len(axes)
    if len(spacings) != len(axes):
        raise TypeError("numpy.gradient: one array of coordinates stands for one axis; give one per axis")
    f = astype(f, np.float64) if f.dtype.kind in "iu" else f
    slopes = tuple(_slope(f, spacing, one, edge_order) for one, spacing in zip(axes, spacings, strict=True))
    if len(slopes) == 1:
        return slopes[0]
    return slopes


def _slope(f: Any, spacing: Any, axis: int, edge_order: int) -> Any:
    """Second order inside; at the ends one-sided differences of the requested order."""
    length = np.shape(f)[axis]
    if length < edge_order + 1:
        raise ValueError(f"numpy.gradient with edge_order {edge_order} needs {edge_order + 1} elements, got {length}")

    def at(start: int | None, stop: int | None) -> Any:
        return f[along(axis, slice(start, stop))]

    if np.ndim(spacing) == 0:
        inside = (at(2, None) - at(None, -2)) / (2.0 * spacing)
        h0, h1, g0, g1 = spacing, spacing, spacing, spacing
    else:
        if np.ndim(spacing) != 1 or np.size(spacing) != length:
            raise ValueError("numpy.gradient: coordinates must be a vector as long as the axis")
        h = diff(as_operand(spacing))
        wide = (np.size(h) - 1, *[1] * (np.ndim(f) - axis - 1))
        before, after = reshape(h[:-1], wide), reshape(h[1:], wide)
        inside = (
            -after / (before * (before + after)) * at(None, -2)
            + (after - before) / (before * after) * at(1, -1)
            + before / (after * (before + after)) * at(2, None)
        )
        h0, h1, g0, g1 = h[0], h[min(1, length - 2)], h[-min(2, length - 1)], h[-1]
    if edge_order == 1:
        start = (at(1, 2) - at(0, 1)) / h0
        end = (at(-1, None) - at(-2, -1)) / g1
    else:
        start = (
            -(2.0 * h0 + h1) / (h0 * (h0 + h1)) * at(0, 1)
            + (h0 + h1) / (h0 * h1) * at(1, 2)
            - h0 / (h1 * (h0 + h1)) * at(2, 3)
        )
        end = (
            g1 / (g0 * (g0 + g1)) * at(-3, -2)
            - (g0 + g1) / (g0 * g1) * at(-2, -1)
            + (2.0 * g1 + g0) / (g1 * (g0 + g1)) * at(-1, None)
        )
    return concatenate([start, inside, end], axis)
