"""Reductions over axes: sums, means, extrema and what is written in terms of them."""

from typing import Any

import numpy as np

from pullback.numpy_api.shapes import astype
from pullback.numpy_api.table import implements, normalized_axes, refuse
from pullback.rules import reductions, shapes


@implements(np.sum)
def sum_(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    refuse("numpy.sum", dtype=dtype, out=out)
    axes = normalized_axes(axis, np.ndim(a))
    if not axes:
        summed = np.add.reduce(np.ones(1, a.dtype)).dtype  # truth values and small integers become integers
        return a if a.dtype == summed else shapes.astype(a, dtype=summed)
    return reductions.sum_(a, axes=axes, keepdims=bool(keepdims))


@implements(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    refuse("numpy.mean", dtype=dtype, out=out)
    axes = normalized_axes(axis, np.ndim(a))
    count = 1
    for reduced in axes:
        count *= np.shape(a)[reduced]
    if a.dtype == np.float16:  # summed in single precision, as NumPy does: 100 times 1000 is too large for half
        wide = astype(a, np.float32)
        return astype(sum_(wide, axis=axes, keepdims=keepdims) / count, np.float16)
    return sum_(a, axis=axes, keepdims=keepdims) / count
