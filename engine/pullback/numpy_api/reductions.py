"""Reductions over axes: sums, products, means, extrema, and what is written in terms of them."""

from typing import Any

import numpy as np

from pullback.numpy_api.operands import NONE, as_operand, normalized_axis, number_of
from pullback.numpy_api.shapes import astype, broadcast_to, expand_dims, moveaxis, reshape
from pullback.numpy_api.translations import implements, normalized_axes, refuse
from pullback.rules import elementwise as e
from pullback.rules import exponential, logic, reductions, softmax
from pullback.rules.complex_numbers import conj, real
from pullback.rules.quotients import spread


@implements(np.sum)
def sum_(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NONE,
    where: Any = True,
) -> Any:
    refuse("numpy.sum", out=out)
    a = _chosen(a if dtype is None else astype(a, dtype), where, 0)
    axes = _axes_of(a, axis)
    if axes or np.ndim(a) == 0:  # of a number too the sum is a scalar
        summed = reductions.sum_(a, axes=axes, keepdims=bool(keepdims))
    else:
        summed = astype(a, np.add.reduce(np.ones(1, a.dtype)).dtype)  # truth values and small integers become integers
    summed = summed if dtype is None else astype(summed, dtype)  # small integers became larger ones
    return summed if _absent(initial) else summed + initial


@implements(np.prod)
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NONE,
    where: Any = True,
) -> Any:
    refuse("numpy.prod", out=out)
    a = _chosen(a if dtype is None else astype(a, dtype), where, 1)
    axes = _axes_of(a, axis)
    if len(axes) == 1:
        product = reductions.prod(a, axis=axes[0])
    else:
        product = reductions.prod(_joined(a, axes), axis=np.ndim(a) - len(axes))
    product = product if dtype is None else astype(product, dtype)
    product = expand_dims(product, axes) if keepdims else product
    return product if _absent(initial) else product * initial


@implements(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    refuse("numpy.mean", out=out)
    count = _count(a, axis, keepdims, where)
    if dtype is not None and np.dtype(dtype).kind in "biu":  # the quotient is cut off
        return astype(sum_(a, axis, dtype, keepdims=keepdims, where=where) / count, dtype)
    if dtype is None and a.dtype.kind in "biu":  # their sum may be none of 64 bits
        dtype = np.float64
    a = a if dtype is None else astype(a, dtype)
    if a.dtype == np.float16:  # summed in single precision, as NumPy does: 100 times 1000 is too large for half
        wide = astype(a, np.float32)
        return astype(sum_(wide, axis=axis, keepdims=keepdims, where=where) / count, np.float16)
    return _divided(sum_(a, axis=axis, keepdims=keepdims, where=where), count)


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    a = as_operand(a)
    if weights is None:
        averaged = mean(a, axis, keepdims=keepdims)
        total = np.asarray(_count(a, axis, keepdims, True), averaged.dtype)
    else:
        weights = as_operand(weights)
        if np.shape(weights) != np.shape(a):
            if axis is None:
                raise TypeError("numpy.average needs an axis where weights and array differ in shape")
            weights = _along_axes(weights, a, axis)
        wanted = np.result_type(a.dtype, weights.dtype, *([np.float64] if a.dtype.kind in "biu" else []))
        weights = astype(weights, wanted)
        total = sum_(weights, axis, keepdims=keepdims)
        averaged = sum_(a * weights, axis, keepdims=keepdims) / total
    return (averaged, broadcast_to(total, np.shape(averaged))) if returned else averaged


def _along_axes(weights: Any, a: Any, axis: Any) -> Any:
    axes = axis if isinstance(axis, tuple) else (axis,)
    places = [normalized_axis(one, np.ndim(a)) for one in axes]
    if np.shape(weights) != tuple(np.shape(a)[place] for place in places):
        raise ValueError("numpy.average: the shape of the weights must be that of the array along the axes")
    ordered = np.transpose(weights, tuple(int(i) for i in np.argsort(places)))
    return reshape(ordered, tuple(n if i in places else 1 for i, n in enumerate(np.shape(a))))


@implements(np.var)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NONE,
    correction: Any = NONE,
) -> Any:
    """With a dtype the sums are of it, not the differences: as in NumPy."""
    refuse("numpy.var", out=out)
    if not _absent(correction):
        ddof = correction
    if dtype is None and a.dtype.kind in "biu":
        dtype = np.float64
    wide = astype(a, np.float32) if a.dtype == np.float16 and dtype is None else a
    centre = _mean_of(wide, axis, dtype, where) if _absent(mean) else mean
    apart = wide - centre
    squares = real(apart * conj(apart)) if a.dtype.kind == "c" else e.square(apart)
    count = np.maximum(_count(a, axis, keepdims, where) - ddof, 0)  # where nothing is left it is 0/0, as in NumPy
    total = sum_(squares, axis, dtype, keepdims=keepdims, where=where)
    return astype(_divided(total, count), total.dtype if wide is a else a.dtype)


def _mean_of(a: Any, axis: Any, dtype: Any, where: Any) -> Any:
    return mean(a, axis, dtype, keepdims=True, where=where)


@implements(np.std)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NONE,
    correction: Any = NONE,
) -> Any:
    refuse("numpy.std", out=out)
    variance = var(a, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean, correction=correction)
    is_whole = variance.dtype.kind in "iu"
    if is_whole and np.ndim(variance):
        raise TypeError(
            f"numpy.std: roots along axes are not cast to {variance.dtype}; leave dtype out, and use astype"
        )
    if where is True and _absent(mean) and _count(a, axis, keepdims, where) == 1:
        return variance  # of one number it is zero wherever the number goes, and so is every derivative
    root = spread(variance)
    return astype(root, variance.dtype) if is_whole else root


@implements(np.max, np.amax)
def max_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NONE, where: Any = True
) -> Any:
    refuse("numpy.max", out=out)
    return _extremum(reductions.max_, e.maximum, a, axis, keepdims, initial, where)


@implements(np.min, np.amin)
def min_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NONE, where: Any = True
) -> Any:
    refuse("numpy.min", out=out)
    return _extremum(reductions.min_, e.minimum, a, axis, keepdims, initial, where)


def _extremum(reduce: Any, pair: Any, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    if where is not True:
        if _absent(initial):
            raise ValueError("a maximum or minimum with where= needs initial=")
        a = _chosen(a, where, initial)
    axes = _axes_of(a, axis)
    if not _absent(initial) and any(a.shape[axis] == 0 for axis in axes):  # what it begins with is all there is
        return astype(sum_(a, axis, keepdims=keepdims), a.dtype) + initial
    found = reduce(a, axes=axes, keepdims=bool(keepdims)) if axes or np.ndim(a) == 0 else a
    return found if _absent(initial) else pair(found, initial)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    refuse("numpy.ptp", out=out)
    return max_(a, axis, keepdims=keepdims) - min_(a, axis, keepdims=keepdims)


@implements(np.all)
def all_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    refuse("numpy.all", out=out)
    return reductions.all_(_chosen(a, where, True), axes=_axes_of(a, axis), keepdims=bool(keepdims))


@implements(np.any)
def any_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    refuse("numpy.any", out=out)
    return reductions.any_(_chosen(a, where, False), axes=_axes_of(a, axis), keepdims=bool(keepdims))


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return sum_(logic.not_equal(a, 0), axis, keepdims=keepdims)


def logaddexp_reduced(
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NONE,
    where: Any = True,
) -> Any:
    """`numpy.logaddexp.reduce`, with the largest element taken off first."""
    refuse("numpy.logaddexp.reduce", out=out)
    a = _chosen(_for_logarithms(a, dtype), where, -np.inf)
    axes = _axes_of(a, axis)
    if not axes:
        return a if _absent(initial) else exponential.logaddexp(a, initial)
    total = softmax.logsumexp(_joined(a, axes), axis=np.ndim(a) - len(axes))
    total = expand_dims(total, axes) if keepdims else total
    return total if _absent(initial) else exponential.logaddexp(total, initial)


def _for_logarithms(a: Any, dtype: Any) -> Any:
    """The array in the dtype of the result, which is floating-point for integers too."""
    none = np.zeros(0, as_operand(a).dtype)
    return astype(as_operand(a), np.logaddexp(none, none).dtype if dtype is None else dtype)


def logaddexp2_reduced(a: Any, axis: Any = 0, **options: Any) -> Any:
    """`numpy.logaddexp2.reduce`."""
    if not _absent(options.get("initial", NONE)):
        options["initial"] = options["initial"] * exponential.LN_2
    a = _for_logarithms(a, options.pop("dtype", None))
    return logaddexp_reduced(a * exponential.LN_2, axis, **options) / exponential.LN_2


# --- numbers that are not there --------------------------------------------------------------------------------------
@implements(np.nansum)
def nansum(a: Any, *args: Any, **keywords: Any) -> Any:
    return sum_(_present(a, 0), *args, **keywords)


@implements(np.nanprod)
def nanprod(a: Any, *args: Any, **keywords: Any) -> Any:
    return prod(_present(a, 1), *args, **keywords)


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, *args: Any, where: Any = True, **keywords: Any) -> Any:
    return mean(a, axis, dtype, *args, where=_numbers(a, where, dtype), **keywords)


@implements(np.nanvar)
def nanvar(a: Any, axis: Any = None, dtype: Any = None, *args: Any, where: Any = True, **keywords: Any) -> Any:
    present = _numbers(a, where, dtype)
    return var(_present(a, 0), axis, dtype, *args, where=present, **keywords)


@implements(np.nanstd)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, *args: Any, where: Any = True, **keywords: Any) -> Any:
    present = _numbers(a, where, dtype)
    return std(_present(a, 0), axis, dtype, *args, where=present, **keywords)


@implements(np.nanmax)
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NONE, where: Any = True
) -> Any:
    if as_operand(a).dtype.kind not in "fc":
        return max_(a, axis, out, keepdims, initial, where)
    found = max_(_present(a, -np.inf), axis, out, keepdims, initial, where)
    return e.where(all_(logic.isnan(a), axis, keepdims=keepdims), np.nan, found)


@implements(np.nanmin)
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NONE, where: Any = True
) -> Any:
    if as_operand(a).dtype.kind not in "fc":
        return min_(a, axis, out, keepdims, initial, where)
    found = min_(_present(a, np.inf), axis, out, keepdims, initial, where)
    return e.where(all_(logic.isnan(a), axis, keepdims=keepdims), np.nan, found)


def _present(a: Any, instead: Any) -> Any:
    return e.where(logic.isnan(a), instead, a)


def _numbers(a: Any, where: Any, dtype: Any) -> Any:
    """The mask of what is a number. NumPy computes no whole numbers, by `dtype`, of broken ones that may be none."""
    if dtype is not None and np.dtype(dtype).kind in "biu" and as_operand(a).dtype.kind not in "biu":
        raise TypeError("If a is inexact, then dtype must be inexact")
    present = logic.logical_not(logic.isnan(a))
    return present if where is True else logic.logical_and(present, where)


def _axes_of(a: Any, axis: Any) -> tuple[int, ...]:
    """The axes to reduce. An array of shape () has none, yet NumPy reduces it along 0 and -1 as well."""
    return () if np.ndim(a) == 0 and axis in (0, -1) else normalized_axes(axis, np.ndim(a))


def _joined(a: Any, axes: tuple[int, ...]) -> Any:
    """The array with several axes made one, its last."""
    rest = np.ndim(a) - len(axes)
    behind = moveaxis(a, axes, tuple(range(rest, np.ndim(a))))
    lengths = np.shape(behind)
    return reshape(behind, (*lengths[:rest], number_of(lengths[rest:])))


def _absent(option: Any) -> bool:
    return option is None or option is NONE


def _chosen(a: Any, where: Any, instead: Any) -> Any:
    """The array with a neutral element where it is not to be counted."""
    return a if where is True else e.where(where, a, instead)


def _divided(total: Any, count: Any) -> Any:
    """A sum over the number of its terms, in the precision of the sum: counts are whole numbers and would widen it."""
    is_exact = total.dtype.kind in "biu"
    is_plain = not hasattr(count, "dtype")
    return total / (count if is_exact or is_plain else astype(count, np.abs(np.zeros(1, total.dtype)).dtype))


def _count(a: Any, axis: Any, keepdims: Any, where: Any) -> Any:
    """The number of elements that go into each result."""
    if where is not True:
        return sum_(broadcast_to(as_operand(where), np.shape(a)), axis, keepdims=keepdims)
    return number_of(np.shape(a)[place] for place in normalized_axes(axis, np.ndim(a)))
