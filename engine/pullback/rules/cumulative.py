"""Running sums and products along an axis.

A running product is differentiated without a division, so that zeros are right to every order: the tangent obeys
dy[k] = x[k] * dy[k-1] + y[k-1] * dx[k], a linear recurrence, which is a primitive of its own and its own transpose.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import Linear, all_batched, unbroadcast
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, type_of
from pullback.rules.indexing import scatter
from pullback.rules.joining import along


def _summed_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.add.accumulate(np.ones(1, dtype)).dtype


def _back_to_front(x: Any, axis: int) -> Any:
    return x[along(axis, slice(None, None, -1))]


cumsum: Linear = Linear(
    "cumsum",
    lambda x, axis: np.add.accumulate(x, axis=axis),
    lambda type_, axis: ArrayType(type_.shape, _summed_dtype(type_.dtype)),
    lambda v, x, axis: unbroadcast(
        _back_to_front(np.cumsum(_back_to_front(v, axis), axis=axis), axis), np.shape(x), x.dtype
    ),
    into=lambda out, x, axis: np.add.accumulate(x, axis=axis, out=out),
    flops=lambda types: types[0].size,
    batch=lambda x, axis: cumsum(x, axis=axis + 1),
)


def shifted(x: Any, axis: int, *, back: bool = False) -> Any:
    """Every element one place further along an axis (or back), with a zero in front (or behind)."""
    kept, place = (slice(1, None), slice(None, -1)) if back else (slice(None, -1), slice(1, None))
    return scatter(x[along(axis, kept)], key=along(axis, place), shape=np.shape(x), dtype=x.dtype)


class _LinearRecurrence(Primitive):
    """s[k] = a[k] * s[k-1] + b[k] along an axis, from s[-1] = 0; in reverse s[k] = a[k] * s[k+1] + b[k]."""

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        a, b = operands
        (type_,) = self.infer(type_of(a), type_of(b), **params)
        (row,) = self.scratch(type_of(a), type_of(b), **params)
        y = np.empty(type_.shape, type_.dtype)
        self.into(y, a, b, **params, scratch=(np.empty(row.shape, row.dtype),))
        return y

    def into(self, out: Any, a: Any, b: Any, axis: int, *, reverse: bool, scratch: Sequence[Any]) -> None:
        np.copyto(out, b)
        (product,) = scratch
        rows, factors = np.moveaxis(out, axis, 0), np.moveaxis(a, axis, 0)
        steps = range(len(rows))
        previous: Any = None
        for k in reversed(steps) if reverse else steps:
            row = slice(k, k + 1)  # an array also where a row is one number
            if previous is not None:
                np.multiply(factors[row], rows[previous], out=product)
                np.add(rows[row], product, out=rows[row])
            previous = row

    def scratch(self, *types: ArrayType, **params: Any) -> Sequence[ArrayType]:
        (y,), axis = self.infer(*types, **params), params["axis"]
        return (ArrayType((1, *y.shape[:axis], *y.shape[axis + 1 :]), y.dtype),)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        a, b = types
        return (ArrayType(b.shape, np.result_type(a.dtype, b.dtype)),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        a, b = operands
        axis, reverse = params["axis"], params["reverse"]
        b_bar = self(shifted(a, axis, back=not reverse), y_bar, axis=axis, reverse=not reverse)
        return (
            unbroadcast(b_bar * shifted(y, axis, back=reverse), np.shape(a), a.dtype) if needed[0] else None,
            unbroadcast(b_bar, np.shape(b), b.dtype) if needed[1] else None,
        )

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        da, db = tangents
        if da is not None:
            moved = da * shifted(y, params["axis"], back=params["reverse"])
            db = moved if db is None else db + moved
        return self(operands[0], db, **params)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        a, b = all_batched(operands, batched)
        return self(a, b, axis=params["axis"] + 1, reverse=params["reverse"])


linear_recurrence = _LinearRecurrence("linear_recurrence")


class _Cumprod(Primitive):
    """Running product along an axis."""

    into = staticmethod(lambda out, x, axis: np.multiply.accumulate(x, axis=axis, out=out))

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return np.multiply.accumulate(operands[0], axis=params["axis"])

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        dtype = np.multiply.accumulate(np.ones(1, types[0].dtype)).dtype
        return (ArrayType(types[0].shape, dtype),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        (x,), axis = operands, params["axis"]
        later = linear_recurrence(shifted(x, axis, back=True), y_bar, axis=axis, reverse=True)
        return (unbroadcast(later * products_before(x, axis), np.shape(x), x.dtype),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        (x,), axis = operands, params["axis"]
        return linear_recurrence(x, tangents[0] * products_before(x, axis), axis=axis, reverse=False)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return self(operands[0], axis=params["axis"] + 1)


cumprod = _Cumprod("cumprod")


def products_before(x: Any, axis: int) -> Any:
    """Exclusive product: for every element the product of those before it along an axis."""
    first = list(np.shape(x))
    first[axis] = min(1, first[axis])
    return np.cumprod(np.concatenate([np.ones(first, x.dtype), x[along(axis, slice(None, -1))]], axis=axis), axis=axis)


def products_after(x: Any, axis: int) -> Any:
    """Exclusive product in reverse: for every element the product of those behind it along an axis."""
    return _back_to_front(products_before(_back_to_front(x, axis), axis), axis)


cases(cumsum, normal(3, 4), axis=0)
cases(cumsum, normal(3, 4), axis=1)
cases(cumprod, normal(3, 4), axis=1)
cases(cumprod, lambda rng: np.array([2.0, 0.0, -1.0, 0.0, 3.0]), axis=0, because="zeros, where a division fails")
for _reverse in (False, True):
    cases(linear_recurrence, normal(4, 3), normal(4, 3), axis=0, reverse=_reverse)
