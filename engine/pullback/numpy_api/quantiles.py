"""Medians and quantiles: elements of the sorted array, and lines between them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.errors import TracingError
from pullback.numpy_api.operands import as_operand, number_of
from pullback.numpy_api.shapes import astype, reshape, squeeze
from pullback.numpy_api.sorting import sort
from pullback.numpy_api.translations import implements, refuse
from pullback.rules import elementwise as e
from pullback.rules import gathering, logic


@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    refuse("numpy.median", out=out)
    del overwrite_input  # nothing is overwritten
    return _median(_quantile, a, axis, keepdims)


@implements(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    refuse("numpy.nanmedian", out=out)
    del overwrite_input
    return _median(_nanquantile, a, axis, keepdims)


def _median(reduce: Callable[..., Any], a: Any, axis: Any, keepdims: bool) -> Any:
    """The mean of the two elements in the middle, in the precision in which `numpy.mean` adds."""
    a = as_operand(a)
    if np.size(a) == 0:
        return np.mean(a, axis, keepdims=keepdims)  # nan, of the right shape
    inexact = a.dtype.kind in "fc"
    wide = np.result_type(a.dtype, np.float32) if inexact else np.dtype(np.float64)
    return astype(reduce(astype(a, wide), 0.5, axis, "linear", keepdims), a.dtype if inexact else wide)


def _hundredths(q: Any) -> Any:
    return q / 100 if issubclass(type(q), int | float) else np.true_divide(_constant(q), 100)


@implements(np.percentile)
def percentile(a: Any, q: Any, *args: Any, weights: Any = None, **keywords: Any) -> Any:
    refuse("numpy.percentile", weights=weights)
    return quantile(a, _hundredths(q), *args, **keywords)


@implements(np.nanpercentile)
def nanpercentile(a: Any, q: Any, *args: Any, weights: Any = None, **keywords: Any) -> Any:
    refuse("numpy.nanpercentile", weights=weights)
    return nanquantile(a, _hundredths(q), *args, **keywords)


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
    del overwrite_input
    return _in_numpys_dtype(_quantile, a, q, axis, method, keepdims)


def _quantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    line, shape = _line(a, axis)
    if line.dtype.kind in "fc" and np.size(line):
        line = e.with_nan_of(line, np.max(line, axis=-1, keepdims=True))  # so is the result, by all elements
    ordered = sort(line)
    return reshape(_at(ordered, np.shape(ordered)[-1], _constant(q), method), (*np.shape(q), *shape(keepdims)))


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
    refuse("numpy.nanquantile", out=out, weights=weights)
    del overwrite_input
    return _in_numpys_dtype(_nanquantile, a, q, axis, method, keepdims)


def _nanquantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    if a.dtype.kind not in "fc":
        return _quantile(a, q, axis, method, keepdims)  # none is NaN
    line, shape = _line(a, axis)
    ordered = sort(line)
    numbers = np.sum(logic.logical_not(logic.isnan(ordered)), axis=-1)
    return reshape(_at(ordered, numbers, _constant(q), method), (*np.shape(q), *shape(keepdims)))


def _constant(q: Any) -> Any:
    if isinstance(q, TracedValue):
        raise TracingError("a quantile cannot be differentiated by q; pass q as a plain number")
    return np.asanyarray(q)


def _in_numpys_dtype(reduce: Callable[..., Any], a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    """Elements as they are; points between them in the precision of both, in which a Python number q takes no part."""
    a, fractions = as_operand(a), _constant(q)
    if a.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    whole = method == "linear" and fractions.dtype.kind in "iu"  # the first element or the last
    if method in ("lower", "higher", "nearest") or whole:
        return reduce(a, q, axis, method, keepdims)
    if a.dtype.kind == "b":
        raise TypeError(
            f"quantiles by method={method!r} lie between elements, and truth values have no distance; pass a.astype(float)"
        )
    weak = type(q) in (int, float)
    at_elements = fractions.dtype.kind in "iu" and method in ("weibull", "interpolated_inverted_cdf")
    share = 0.0 if weak else fractions.dtype if fractions.dtype.kind == "f" or at_elements else np.float64
    dtype = np.result_type(a.dtype, share)
    wide = astype(a, dtype) if a.dtype.kind == "f" else a  # distances of integers are whole, as NumPy's
    return astype(reduce(wide, q, axis, method, keepdims), dtype)


def _line(a: Any, axis: Any) -> tuple[Any, Any]:
    """The array with its reduced axes made one, the last; and the shape of the result."""
    a = as_operand(a)
    ndim, lengths = np.ndim(a), np.shape(a)
    axes = tuple(range(ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, ndim)
    rest = [place for place in range(ndim) if place not in axes]
    line = reshape(
        np.transpose(a, (*rest, *axes)),
        (*(lengths[place] for place in rest), number_of(lengths[place] for place in axes)),
    )
    kept = tuple(1 if place in axes else lengths[place] for place in range(ndim))
    return line, lambda keepdims: kept if keepdims else tuple(lengths[place] for place in rest)


def _at(ordered: Any, length: Any, q: Any, method: str) -> Any:
    """Elements at the fractions q of each sorted line, the results along new leading axes."""
    parts = [_one(ordered, length, float(fraction), method) for fraction in q.ravel()]
    return parts[0] if q.ndim == 0 else np.stack(parts)


_ESTIMATES = {
    # method: (alpha, beta) of Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    "hazen": (0.5, 0.5),
    "interpolated_inverted_cdf": (0.0, 1.0),
}
_PICKS: dict[str, Callable[[Any], Any]] = {
    "lower": np.floor,
    "higher": np.ceil,
    "nearest": np.rint,
    "linear": lambda place: place,  # by the formula of the estimates it may come out just below a whole number
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
    share = _weight(place - below, ordered)
    if issubclass(type(length), int):
        low = int(below)
        high = min(low + 1, length - 1)
        if low == high or (issubclass(type(share), float) and share == 0):
            return ordered[..., low]  # also where it is infinite, and has no distance to itself
        return _between(
            ordered[..., low], ordered[..., high], share, halfway=share == 0.5 and ordered.dtype.kind in "fc"
        )
    at = np.maximum(below, 0).astype(np.intp)
    is_median = fraction == 0.5 and method == "linear"  # a share is a half then, or nothing of the element itself
    step = (share > 0) * 1 if is_median else 1
    above = np.minimum(at + step, np.maximum(length - 1, 0))
    return _between(_read(ordered, at), _read(ordered, above), share, halfway=is_median)


def _between(low: Any, high: Any, share: Any, *, halfway: bool) -> Any:
    """Interpolate on the line from one element to the next, from the nearer one as NumPy does; halfway as their mean, for equal infinities."""
    if halfway:
        return (low + high) * 0.5
    distance = high - low
    if issubclass(type(share), float):
        return low + distance * share if share < 0.5 else high - distance * (1 - share)
    return e.where(share < 0.5, low + distance * share, high - distance * (1 - share))


def _read(ordered: Any, at: Any) -> Any:
    at = as_operand(at)
    return squeeze(gathering.take_along(ordered, reshape(at, (*np.shape(at), 1)), axis=np.ndim(ordered) - 1), -1)


def _weight(x: Any, model: Any) -> Any:
    """A weight in the precision of what is weighed; of integers in its own."""
    if np.ndim(x) == 0 and not isinstance(x, TracedValue):
        return float(x)
    return x.astype(model.dtype) if model.dtype.kind == "f" else x
