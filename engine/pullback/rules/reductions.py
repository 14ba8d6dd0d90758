"""Sums over axes. Mean and the rest are written in terms of them in `numpy_api`."""

from typing import Any

import numpy as np

from pullback.cases import cases, normal
from pullback.ir.types import ArrayType, Shape
from pullback.kinds import Linear


def reduced_shape(shape: Shape, axes: tuple[int, ...], *, keepdims: bool) -> Shape:
    """Shape after reducing non-negative axes."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _sum_type(type_: ArrayType, axes: tuple[int, ...], *, keepdims: bool) -> ArrayType:
    dtype = np.add.reduce(np.ones(1, type_.dtype)).dtype  # small integers and bools are summed in the platform's int
    return ArrayType(reduced_shape(type_.shape, axes, keepdims=keepdims), dtype)


def _spread(v: Any, x: Any, axes: tuple[int, ...], *, keepdims: bool) -> Any:
    shape = np.shape(x)
    if not keepdims and np.ndim(v):
        v = np.reshape(v, reduced_shape(shape, axes, keepdims=True))
    return np.broadcast_to(v, shape)


sum_ = Linear(
    "sum",
    lambda x, axes, keepdims: np.add.reduce(x, axis=axes, keepdims=keepdims),
    lambda type_, axes, keepdims: _sum_type(type_, axes, keepdims=keepdims),
    lambda v, x, axes, keepdims: _spread(v, x, axes, keepdims=keepdims),
    into=lambda out, x, axes, keepdims: np.add.reduce(x, axis=axes, out=out, keepdims=keepdims),
    flops=lambda types: types[0].size,
)

cases(sum_, normal(3, 4), axes=(0, 1), keepdims=False)
cases(sum_, normal(3, 4), axes=(1,), keepdims=False)
cases(sum_, normal(2, 3, 4), axes=(0, 2), keepdims=True)
