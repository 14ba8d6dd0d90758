"""Sorting and positions. An order is flat; what is sorted is read in that order, so ties go with the stable order."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.numpy_api.operands import as_operand, concrete, normalized_axis
from pullback.numpy_api.shapes import ravel, reshape, squeeze
from pullback.numpy_api.table import implements, refuse
from pullback.primitive import Traced
from pullback.rules import elementwise as e
from pullback.rules import gathering, logic, ordering


def in_line(a: Any, axis: Any) -> tuple[Any, int]:
    """The array and its axis, non-negative; without one the array in one line."""
    a = as_operand(a)
    if axis is None or np.ndim(a) == 0:
        return ravel(a), 0
    return a, normalized_axis(axis, np.ndim(a))


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    del kind, stable  # the order is always the stable one, which every kind may give
    refuse("numpy.argsort", order=order)
    a, axis = in_line(a, axis)
    return ordering.argsort(a, axis=axis)


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a, axis = in_line(a, axis)
    return gathering.take_along(a, argsort(a, axis, kind, order, stable=stable), axis=axis)


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    refuse("numpy.argpartition", order=order, kind=None if kind == "introselect" else kind)
    a, axis = in_line(a, axis)
    return ordering.argpartition(a, kth=tuple(np.atleast_1d(kth).tolist()), axis=axis)


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """Elements other than those at kth may stand in another order than NumPy's, which promises none."""
    a, axis = in_line(a, axis)
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
    flat = logic.equal(low, high)
    return np.linspace(e.where(flat, low - 0.5, low), e.where(flat, high + 0.5, high), int(bins) + 1)


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,  # noqa: A002 (NumPy's name)
) -> Any:
    """Each value once, read where it first stands; how many there are depends on the values."""
    del sorted
    values = np.unique(concrete(ar, "numpy.unique"), True, True, True, axis, equal_nan=equal_nan)
    _, first, inverse, counts = values
    ar = ravel(ar) if axis is None else ar
    place = 0 if axis is None else normalized_axis(axis, np.ndim(ar))
    read = gathering.gather(ar, first, key=(*[slice(None)] * place, gathering.ARRAY))
    asked = zip((return_index, return_inverse, return_counts), (first, inverse, counts), strict=True)
    results = (read, *(result for wanted, result in asked if wanted))
    return results if len(results) > 1 else read


# --- quantiles -------------------------------------------------------------------------------------------------------
@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    return quantile(a, 0.5, axis, out, overwrite_input, keepdims=keepdims)


@implements(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    return nanquantile(a, 0.5, axis, out, overwrite_input, keepdims=keepdims)


@implements(np.percentile)
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    refuse("numpy.percentile", weights=weights)
    return quantile(a, np.true_divide(_constant(q), 100), axis, out, overwrite_input, method, keepdims)


@implements(np.nanpercentile)
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    refuse("numpy.nanpercentile", weights=weights)
    return nanquantile(a, np.true_divide(_constant(q), 100), axis, out, overwrite_input, method, keepdims)


@implements(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    refuse("numpy.quantile", out=out, weights=weights)
    del overwrite_input  # nothing is overwritten
    ordered, shape = _sorted_line(a, axis)
    length = np.shape(ordered)[-1]
    result = _at(ordered, length, _constant(q), method)
    result = e.where(logic.isnan(ordered[..., -1]), np.nan, result)  # nan is sorted to the end
    return reshape(result, (*np.shape(q), *shape(keepdims)))


@implements(np.nanquantile)
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    refuse("numpy.nanquantile", out=out, weights=weights, method=None if method == "linear" else method)
    del overwrite_input
    ordered, shape = _sorted_line(a, axis)
    numbers = np.sum(logic.logical_not(logic.isnan(ordered)), axis=-1)
    return reshape(_at(ordered, numbers, _constant(q), "linear"), (*np.shape(q), *shape(keepdims)))


def _constant(q: Any) -> Any:
    if isinstance(q, Traced):
        raise TracingError("a quantile cannot be differentiated by q; pass q as a plain number")
    return np.asanyarray(q)


def _sorted_line(a: Any, axis: Any) -> tuple[Any, Any]:
    """The array sorted along its reduced axes made one, the last; and the shape of the result."""
    a = as_operand(a)
    ndim, lengths = np.ndim(a), np.shape(a)
    axes = tuple(range(ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, ndim)
    rest = [place for place in range(ndim) if place not in axes]
    line = reshape(np.transpose(a, (*rest, *axes)), (*(lengths[place] for place in rest), -1))
    kept = tuple(1 if place in axes else lengths[place] for place in range(ndim))
    return sort(line), lambda keepdims: kept if keepdims else tuple(lengths[place] for place in rest)


def _at(ordered: Any, length: Any, q: Any, method: str) -> Any:
    """Elements at the fractions q of each sorted line, the results along new leading axes."""
    parts = [_one(ordered, length, float(fraction), method) for fraction in q.ravel()]
    return parts[0] if q.ndim == 0 else np.stack(parts)


_ESTIMATES = {
    # method: (alpha, beta) of Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    "hazen": (0.5, 0.5),
    "interpolated_inverted_cdf": (0.0, 1.0),
}
_PICKS: dict[str, Callable[[Any], Any]] = {
    "lower": np.floor,
    "higher": np.ceil,
    "nearest": np.rint,
    "midpoint": lambda place: 0.5 * (np.floor(place) + np.ceil(place)),
}


def _one(ordered: Any, length: Any, fraction: float, method: str) -> Any:
    if not 0 <= fraction <= 1:
        raise ValueError(f"quantiles lie between 0 and 1, got {fraction}")
    if method in _PICKS:
        place = _PICKS[method](fraction * (length - 1))
    elif method in _ESTIMATES:
        alpha, beta = _ESTIMATES[method]
        place = length * fraction + (alpha + fraction * (1 - alpha - beta)) - 1
    else:
        raise TracingError(f"quantiles by method={method!r} have no rule; use one of {[*_PICKS, *_ESTIMATES]}")
    place = np.minimum(np.maximum(place, 0), length - 1)
    below = np.floor(place)
    share = astype_of(place - below, ordered)
    if isinstance(length, int):
        low = int(below)
        high = min(low + 1, length - 1)
        return ordered[..., low] + (ordered[..., high] - ordered[..., low]) * share
    at = np.maximum(below, 0).astype(np.intp)
    return (
        _read(ordered, at)
        + (_read(ordered, np.minimum(at + 1, np.maximum(length - 1, 0))) - _read(ordered, at)) * share
    )


def _read(ordered: Any, at: Any) -> Any:
    at = as_operand(at)
    return squeeze(gathering.take_along(ordered, reshape(at, (*np.shape(at), 1)), axis=np.ndim(ordered) - 1), -1)


def astype_of(x: Any, model: Any) -> Any:
    """A weight in the precision of what is weighed."""
    return float(x) if np.ndim(x) == 0 and not isinstance(x, Traced) else x.astype(model.dtype)
