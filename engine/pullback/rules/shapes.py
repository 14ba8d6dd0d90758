"""Functions that move elements without changing them. All are linear; each is the other's transpose."""

from typing import Any

import numpy as np

from pullback.cases import cases, normal
from pullback.ir.types import ArrayType, Shape
from pullback.kinds import Linear, unbroadcast


def _reshaped(type_: ArrayType, shape: Shape) -> ArrayType:
    if type_.size != ArrayType(shape, type_.dtype).size:
        raise ValueError(f"cannot reshape an array of shape {type_.shape} into shape {shape}")
    return ArrayType(shape, type_.dtype)


def _broadcast(type_: ArrayType, shape: Shape) -> ArrayType:
    if np.broadcast_shapes(type_.shape, shape) != shape:
        raise ValueError(f"cannot broadcast an array of shape {type_.shape} to shape {shape}")
    return ArrayType(shape, type_.dtype)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(axis) for axis in np.argsort(axes))


def _cast_back(v: Any, x: Any) -> Any:
    return v.astype(x.dtype) if hasattr(x, "dtype") else v.astype(float)


reshape = Linear(
    "reshape",
    np.reshape,
    _reshaped,
    lambda v, x, shape: np.reshape(v, np.shape(x)),
    is_view=True,
)
transpose = Linear(
    "transpose",
    np.transpose,
    lambda type_, axes: ArrayType(tuple(type_.shape[axis] for axis in axes), type_.dtype),
    lambda v, x, axes: np.transpose(v, _inverse(axes)),
    is_view=True,
)
broadcast_to = Linear(
    "broadcast_to",
    np.broadcast_to,
    _broadcast,
    lambda v, x, shape: unbroadcast(v, np.shape(x), v.dtype),
    is_view=True,
)
astype = Linear(
    "astype",
    lambda x, dtype: np.asarray(x).astype(dtype)[()],
    lambda type_, dtype: ArrayType(type_.shape, dtype),
    lambda v, x, dtype: _cast_back(v, x),
)

cases(reshape, normal(3, 4), shape=(2, 6))
cases(transpose, normal(2, 3, 4), axes=(2, 0, 1))
cases(broadcast_to, normal(3, 1), shape=(2, 3, 4))
cases(astype, normal(3), dtype=np.dtype(np.float64))
