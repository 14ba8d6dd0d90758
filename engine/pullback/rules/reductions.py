"""Sums, products and extrema over axes. Mean and the rest are written in terms of them in `numpy_api`."""

import operator
from collections.abc import Callable, Sequence
from math import prod as prod_of
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import Linear, unbroadcast
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape, dtype_of
from pullback.core.zero_derivatives import ZeroDerivative
from pullback.rules.cumulative import products_after, products_before
from pullback.rules.elementwise import with_nan_of

Axes = tuple[int, ...]


def reduced_shape(shape: Shape, axes: Axes, *, keepdims: bool) -> Shape:
    """Shape after reducing non-negative axes."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def behind_the_batch(axes: Axes) -> Axes:
    """The same axes of an operand with one more in front."""
    return tuple(axis + 1 for axis in axes)


def _sum_type(type_: ArrayType, axes: Axes, *, keepdims: bool) -> ArrayType:
    dtype = np.add.reduce(np.ones(1, type_.dtype)).dtype  # small integers and bools are summed in the platform's int
    return ArrayType(reduced_shape(type_.shape, axes, keepdims=keepdims), dtype)


def _kept(v: Any, shape: Shape, axes: Axes, *, keepdims: bool) -> Any:
    """A result or its cotangent with the reduced axes, of length one, put back."""
    if not keepdims and np.ndim(v):
        return np.reshape(v, reduced_shape(shape, axes, keepdims=True))
    return v


def _spread(v: Any, x: Any, axes: Axes, *, keepdims: bool) -> Any:
    return np.broadcast_to(_kept(v, np.shape(x), axes, keepdims=keepdims), np.shape(x))


sum_: Linear = Linear(
    "sum",
    lambda x, axes, keepdims: np.add.reduce(x, axis=axes, keepdims=keepdims),
    lambda type_, axes, keepdims: _sum_type(type_, axes, keepdims=keepdims),
    lambda v, x, axes, keepdims: _spread(v, x, axes, keepdims=keepdims),
    into=lambda out, x, axes, keepdims: np.add.reduce(x, axis=axes, out=out, keepdims=keepdims),
    flops=lambda types: types[0].size,
    batch=lambda x, axes, keepdims: sum_(x, axes=behind_the_batch(axes), keepdims=keepdims),
)


class _Extremum(Primitive):
    """The largest or smallest element over axes; equal ones share the derivative equally, that of NaN is NaN."""

    def __init__(self, name: str, ufunc: np.ufunc, beaten: Callable[[Any, Any], Any]) -> None:
        super().__init__(name)
        self._ufunc = ufunc
        self._beaten = beaten

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return self._ufunc.reduce(operands[0], axis=params["axes"], keepdims=params["keepdims"])

    def into(self, out: Any, x: Any, axes: Axes, *, keepdims: bool) -> None:
        self._ufunc.reduce(x, axis=axes, out=out, keepdims=keepdims)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        (type_,), axes = types, params["axes"]
        if any(type_.shape[axis] == 0 for axis in axes):
            raise ValueError(f"{self.name} over an axis of length zero has no value")
        return (ArrayType(reduced_shape(type_.shape, axes, keepdims=params["keepdims"]), type_.dtype),)

    def _losers(self, y: Any, x: Any, params: dict[str, Any]) -> tuple[Any, Any]:
        """A mask of elements that are not the extremum, and the number of those that are; NaN where the extremum is."""
        axes = params["axes"]
        kept = _kept(y, np.shape(x), axes, keepdims=params["keepdims"])
        losers = self._beaten(x, kept)
        length = prod_of(np.shape(x)[axis] for axis in axes)
        count = (length - np.sum(losers, axis=axes, keepdims=True)).astype(dtype_of(x))
        return losers, with_nan_of(count, kept)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        (x,) = operands
        losers, count = self._losers(y, x, params)
        share = _kept(y_bar, np.shape(x), params["axes"], keepdims=params["keepdims"]) / count
        return (np.where(losers, 0, share),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        losers, count = self._losers(y, operands[0], params)
        moved = np.sum(np.where(losers, 0, tangents[0]), axis=params["axes"], keepdims=params["keepdims"])
        return moved / np.reshape(count, np.shape(y))

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return self(operands[0], axes=behind_the_batch(params["axes"]), keepdims=params["keepdims"])

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return types[0].size


max_ = _Extremum("max", np.maximum, operator.lt)
min_ = _Extremum("min", np.minimum, operator.gt)


class _Prod(Primitive):
    """Product along one axis. The derivative multiplies the others up, so that zeros are right to every order."""

    into = staticmethod(lambda out, x, axis: np.multiply.reduce(x, axis=axis, out=out))

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return np.multiply.reduce(operands[0], axis=params["axis"])

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        dtype = np.multiply.reduce(np.ones(1, types[0].dtype)).dtype
        return (ArrayType(reduced_shape(types[0].shape, (params["axis"],), keepdims=False), dtype),)

    def _others(self, x: Any, axis: int) -> Any:
        return products_before(x, axis) * products_after(x, axis)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        (x,), axis = operands, params["axis"]
        x_bar = np.expand_dims(y_bar, axis) * self._others(x, axis)
        return (unbroadcast(x_bar, np.shape(x), x.dtype),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        (x,), axis = operands, params["axis"]
        return np.sum(tangents[0] * self._others(x, axis), axis=axis)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return self(operands[0], axis=params["axis"] + 1)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return types[0].size


prod = _Prod("prod")

all_: ZeroDerivative = ZeroDerivative(
    "all",
    lambda x, axes, keepdims: np.logical_and.reduce(x, axis=axes, keepdims=keepdims),
    lambda type_, axes, keepdims: ArrayType(reduced_shape(type_.shape, axes, keepdims=keepdims), np.dtype(bool)),
    batch=lambda x, axes, keepdims: all_(x, axes=behind_the_batch(axes), keepdims=keepdims),
    into=lambda out, x, axes, keepdims: np.logical_and.reduce(x, axis=axes, out=out, keepdims=keepdims),
)
any_: ZeroDerivative = ZeroDerivative(
    "any",
    lambda x, axes, keepdims: np.logical_or.reduce(x, axis=axes, keepdims=keepdims),
    lambda type_, axes, keepdims: ArrayType(reduced_shape(type_.shape, axes, keepdims=keepdims), np.dtype(bool)),
    batch=lambda x, axes, keepdims: any_(x, axes=behind_the_batch(axes), keepdims=keepdims),
    into=lambda out, x, axes, keepdims: np.logical_or.reduce(x, axis=axes, out=out, keepdims=keepdims),
)

cases(sum_, normal(3, 4), axes=(0, 1), keepdims=False)
cases(sum_, normal(3, 4), axes=(1,), keepdims=False)
cases(sum_, normal(2, 3, 4), axes=(0, 2), keepdims=True)
for _extremum in (max_, min_):
    cases(_extremum, normal(3, 4), axes=(0, 1), keepdims=False)
    cases(_extremum, normal(2, 3, 4), axes=(0, 2), keepdims=True)
    cases(_extremum, normal(3, 4), axes=(1,), keepdims=False)
cases(prod, normal(3, 4), axis=1)
cases(prod, normal(4), axis=0)
cases(prod, lambda rng: np.array([2.0, 0.0, -1.0]), axis=0, because="one zero, where a division fails")
cases(prod, lambda rng: np.array([2.0, 0.0, 0.0]), axis=0, because="two zeros, where only the second order is left")
