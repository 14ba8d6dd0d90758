"""Reading part of an array, and the transposes: writing a part into zeros, adding a part to an array.

Keys are basic ones (integers, slices, Ellipsis, None), which select every element at most once.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import Linear
from pullback.core.primitive import Primitive
from pullback.core.scattered import Scattered
from pullback.ir.types import ArrayType, Shape


def _indexed_type(type_: ArrayType, key: Any) -> ArrayType:
    probe = np.broadcast_to(np.zeros((), type_.dtype), type_.shape)[key]  # no memory, and NumPy's own bounds checks
    return ArrayType(probe.shape, type_.dtype)


def _scatter(v: Any, key: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
    x = np.zeros(shape, dtype)
    x[key] = v
    return x


def _behind_batch(key: Any) -> Any:
    """The same key of an array with one more axis in front."""
    return (slice(None), *(key if isinstance(key, tuple) else (key,)))


index = Linear(
    "index",
    lambda x, key: x[key],
    _indexed_type,
    lambda v, x, key: Scattered(v, key, np.shape(x), x.dtype),
    is_view=True,
    batch=lambda x, key: x[_behind_batch(key)],
)


def _write_scattered(out: Any, v: Any, key: Any, shape: Shape, dtype: np.dtype[Any]) -> None:
    del shape, dtype
    out.fill(0)
    out[key] = v


scatter: Linear = Linear(
    "scatter",
    _scatter,
    lambda type_, key, shape, dtype: ArrayType(shape, dtype),
    lambda v, x, key, shape, dtype: v[key],
    into=_write_scattered,
    batch=lambda v, key, shape, dtype: scatter(v, key=_behind_batch(key), shape=(np.shape(v)[0], *shape), dtype=dtype),
)


class _AddAt(Primitive):
    """`x` with `v` added at a key, in a new array; a plan writes into x itself where x is not needed again."""

    def into(self, out: Any, *operands: Any, **params: Any) -> None:
        x, v = operands
        np.copyto(out, x)
        out[params["key"]] += v

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        x, v = operands
        y = np.array(x)
        y[params["key"]] += v
        return y

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        del params
        return (types[0],)

    def pull(
        self,
        needed: Sequence[bool],
        y_bar: Any,
        y: Any,
        operands: Sequence[Any],
        params: dict[str, Any],
    ) -> Sequence[Any]:
        del y, operands
        return (y_bar if needed[0] else None, y_bar[params["key"]] if needed[1] else None)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        del operands
        dx, dv = tangents
        if dv is None:
            return dx
        if dx is None:
            return scatter(dv, key=params["key"], shape=np.shape(y), dtype=y.dtype)
        return self(dx, dv, **params)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        x, v = operands
        if not batched[0]:
            x = np.broadcast_to(x, (np.shape(v)[0], *np.shape(x)))
        return self(x, v, key=_behind_batch(params["key"]))


add_at = _AddAt("add_at")

cases(index, normal(3, 4), key=1)
cases(index, normal(3, 4), key=(slice(None), -1))
cases(index, normal(6), key=slice(4, 0, -2))
cases(index, normal(3), key=(None, slice(1, None)))
cases(scatter, normal(2), key=slice(1, 3), shape=(5,), dtype=np.dtype(np.float64))
cases(add_at, normal(3, 4), normal(4), key=1)
cases(add_at, normal(5), normal(), key=2)
