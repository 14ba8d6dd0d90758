"""Sorting and positions. An order is flat; what is sorted is read in that order, so ties go with the stable order."""

from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.numpy_api.operands import as_operand, concrete, normalized_axis
from pullback.numpy_api.shapes import in_line, ravel, reshape
from pullback.numpy_api.translations import implements, refuse
from pullback.rules import elementwise as e
from pullback.rules import gathering, logic, ordering


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    del kind, stable  # the order is always the stable one, which every kind may give
    refuse("numpy.argsort", order=order)
    a, axis = in_line(a, axis)
    return ordering.argsort(a, axis=axis)


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a, axis = _in_line_of_array(a, axis)
    return gathering.take_along(a, argsort(a, axis, kind, order, stable=stable), axis=axis)


def _in_line_of_array(a: Any, axis: Any) -> tuple[Any, int]:
    """The array and its axis; a number has none, though NumPy gives its order along one."""
    if axis is not None:
        normalized_axis(axis, np.ndim(a))
    return in_line(a, axis)


def running_max(a: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """`numpy.maximum.accumulate`: of equal elements the first is the one that moves it."""
    return _running(ordering.running_argmax, "numpy.maximum.accumulate", a, axis, dtype=dtype, out=out)


def running_min(a: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """`numpy.minimum.accumulate`."""
    return _running(ordering.running_argmin, "numpy.minimum.accumulate", a, axis, dtype=dtype, out=out)


def _running(positions: Any, name: str, a: Any, axis: Any, **options: Any) -> Any:
    refuse(name, **options)
    a = as_operand(a)
    axis = normalized_axis(axis, np.ndim(a))
    return gathering.take_along(a, positions(a, axis=axis), axis=axis) if np.size(a) else a


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    refuse("numpy.argpartition", order=order, kind=None if kind == "introselect" else kind)
    a, axis = in_line(a, axis)
    return ordering.argpartition(a, kth=tuple(np.atleast_1d(kth).tolist()), axis=axis)


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """Elements other than those at kth may stand in another order than NumPy's, which promises none."""
    a, axis = _in_line_of_array(a, axis)
    return gathering.take_along(a, argpartition(a, kth, axis, kind, order), axis=axis)


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    ordered = sort(a)
    return ordered if ordered.dtype.kind == "c" else ordered.astype(np.result_type(ordered.dtype, np.complex64))


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    operands = [as_operand(key) for key in keys]
    return ordering.lexsort(*operands, axis=normalized_axis(axis, np.ndim(operands[0])))


@implements(np.argmax)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    refuse("numpy.argmax", out=out)
    return _position(ordering.argmax, a, axis, keepdims)


@implements(np.argmin)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    refuse("numpy.argmin", out=out)
    return _position(ordering.argmin, a, axis, keepdims)


@implements(np.nanargmax)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return argmax(e.where(logic.isnan(a), -np.inf, a), axis, out, keepdims=keepdims)


@implements(np.nanargmin)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return argmin(e.where(logic.isnan(a), np.inf, a), axis, out, keepdims=keepdims)


def _position(find: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    line, place = in_line(a, axis)
    if axis is not None:
        return find(line, axis=place, keepdims=bool(keepdims))
    found = find(line, axis=0, keepdims=False)
    return reshape(found, (1,) * np.ndim(a)) if keepdims else found


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    a = as_operand(a)
    if sorter is not None:
        a = gathering.gather(a, as_operand(sorter), key=(gathering.ARRAY,))
    return ordering.searchsorted(a, as_operand(v), side=side)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    if as_operand(x).dtype.kind == "c":
        raise TypeError("numpy.digitize: x may not be complex")
    bins = as_operand(bins)
    steps = concrete(bins, "numpy.digitize")
    if np.all(steps[1:] >= steps[:-1]):
        return searchsorted(bins, x, "left" if right else "right")
    if np.all(steps[1:] <= steps[:-1]):
        return np.size(bins) - searchsorted(bins[::-1], x, "right" if right else "left")
    raise ValueError("numpy.digitize: bins must rise or fall")


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:  # noqa: A002 (NumPy's name)
    """Counts are flat; edges laid between the smallest and the largest element move with them."""
    refuse("numpy.histogram", weights=weights)
    if isinstance(bins, str):
        raise TracingError("numpy.histogram: the number of bins must be given while tracing, not a name of a rule")
    a = ravel(as_operand(a))
    edges = _edges(a, bins, range) if np.ndim(bins) == 0 else as_operand(bins)
    counts = ordering.histogram(a, edges)
    if density:
        return counts / np.diff(edges) / np.sum(counts), edges
    return counts, edges


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:  # noqa: A002 (NumPy's name)
    return histogram(a, bins, range, None, weights)[1]


def _edges(a: Any, bins: Any, bounds: Any) -> Any:
    low, high = (np.min(a), np.max(a)) if bounds is None else bounds
    dtype = np.result_type(a.dtype, *(x if type(x) in (int, float) else as_operand(x).dtype for x in (low, high)))
    flat = logic.equal(low, high)
    ends = e.where(flat, low - 0.5, low), e.where(flat, high + 0.5, high)
    return np.linspace(*ends, int(bins) + 1, dtype=dtype if dtype.kind == "f" else np.float64)
