"""Functions that move elements without changing them. All are linear; each is the other's transpose."""

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import Linear, behind_batch, cast, unbroadcast
from pullback.core.types import ArrayType, Shape, dtype_of


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


reshape = Linear(
    "reshape",
    np.reshape,
    _reshaped,
    lambda v, x, shape: np.reshape(v, np.shape(x)),
    is_view=True,
    batch=lambda x, shape: np.reshape(x, (np.shape(x)[0], *shape)),
)
transpose = Linear(
    "transpose",
    np.transpose,
    lambda type_, axes: ArrayType(tuple(type_.shape[axis] for axis in axes), type_.dtype),
    lambda v, x, axes: np.transpose(v, _inverse(axes)),
    is_view=True,
    batch=lambda x, axes: np.transpose(x, (0, *(axis + 1 for axis in axes))),
)
broadcast_to = Linear(
    "broadcast_to",
    np.broadcast_to,
    _broadcast,
    lambda v, x, shape: unbroadcast(v, np.shape(x), v.dtype),
    is_view=True,
    batch=lambda x, shape: np.broadcast_to(behind_batch(x, len(shape)), (np.shape(x)[0], *shape)),
)
astype = Linear(
    "astype",
    lambda x, dtype: np.asarray(x).astype(dtype)[()],
    lambda type_, dtype: ArrayType(type_.shape, dtype),
    lambda v, x, dtype: cast(v, dtype_of(x)),
    into=lambda out, x, dtype: np.copyto(out, x, casting="unsafe"),
    batch=lambda x, dtype: x.astype(dtype),
)

cases(reshape, normal(3, 4), shape=(2, 6))
cases(transpose, normal(2, 3, 4), axes=(2, 0, 1))
cases(broadcast_to, normal(3, 1), shape=(2, 3, 4))
cases(astype, normal(3), dtype=np.dtype(np.float64))
