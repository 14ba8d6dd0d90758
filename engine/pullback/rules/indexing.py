"""Reading part of an array, and the transpose: writing a part into zeros.

Keys are basic ones (integers, slices, Ellipsis, None), which select every element at most once.
"""

from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import Linear
from pullback.core.scattered_cotangent import ScatteredCotangent
from pullback.core.types import ArrayType, Shape


def _indexed_type(type_: ArrayType, key: Any) -> ArrayType:
    probe = np.broadcast_to(np.zeros((), type_.dtype), type_.shape)[key]  # no memory, and NumPy's own bounds checks
    return ArrayType(probe.shape, type_.dtype)


def _scatter(v: Any, key: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
    x = np.zeros(shape, dtype)
    x[key] = v
    return x


def behind_batch_key(key: Any) -> Any:
    """The same key of an array with one more axis in front."""
    return (slice(None), *(key if isinstance(key, tuple) else (key,)))


index = Linear(
    "index",
    lambda x, key: x[key],
    _indexed_type,
    lambda v, x, key: ScatteredCotangent(v, key, np.shape(x), x.dtype),
    is_view=True,
    batch=lambda x, key: x[behind_batch_key(key)],
)


def _write_scattered(out: Any, v: Any, key: Any, shape: Shape, dtype: np.dtype[Any]) -> None:
    out.fill(0)
    out[key] = v


scatter: Linear = Linear(
    "scatter",
    _scatter,
    lambda type_, key, shape, dtype: ArrayType(shape, dtype),
    lambda v, x, key, shape, dtype: v[key],
    into=_write_scattered,
    batch=lambda v, key, shape, dtype: scatter(
        v, key=behind_batch_key(key), shape=(np.shape(v)[0], *shape), dtype=dtype
    ),
)


cases(index, normal(3, 4), key=1)
cases(index, normal(3, 4), key=(slice(None), -1))
cases(index, normal(6), key=slice(4, 0, -2))
cases(index, normal(3), key=(None, slice(1, None)))
cases(scatter, normal(2), key=slice(1, 3), shape=(5,), dtype=np.dtype(np.float64))
