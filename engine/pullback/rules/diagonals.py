"""Diagonals and triangles of matrices."""

from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import Linear
from pullback.ir.types import ArrayType, Shape


def _diagonal_type(type_: ArrayType, offset: int, axis1: int, axis2: int) -> ArrayType:
    probe = np.broadcast_to(np.zeros((), type_.dtype), type_.shape).diagonal(offset, axis1, axis2)
    return ArrayType(probe.shape, type_.dtype)


def _on_diagonal(v: Any, shape: Shape, offset: int, axis1: int, axis2: int) -> Any:
    x = np.zeros(shape, v.dtype)
    k = np.arange(v.shape[-1])
    np.moveaxis(x, (axis1, axis2), (-2, -1))[..., k + max(-offset, 0), k + max(offset, 0)] = v
    return x


diagonal: Linear = Linear(
    "diagonal",
    lambda x, offset, axis1, axis2: np.array(x.diagonal(offset, axis1, axis2)),
    _diagonal_type,
    lambda v, x, offset, axis1, axis2: on_diagonal(v, shape=np.shape(x), offset=offset, axis1=axis1, axis2=axis2),
    batch=lambda x, offset, axis1, axis2: diagonal(x, offset=offset, axis1=axis1 + 1, axis2=axis2 + 1),
)
on_diagonal: Linear = Linear(
    "on_diagonal",
    _on_diagonal,
    lambda type_, shape, offset, axis1, axis2: ArrayType(shape, type_.dtype),
    lambda v, x, shape, offset, axis1, axis2: diagonal(v, offset=offset, axis1=axis1, axis2=axis2),
    batch=lambda x, shape, offset, axis1, axis2: on_diagonal(
        x, shape=(np.shape(x)[0], *shape), offset=offset, axis1=axis1 + 1, axis2=axis2 + 1
    ),
)
lower: Linear = Linear(
    "lower_triangle",
    np.tril,
    lambda type_, k: type_,
    lambda v, x, k: lower(v, k=k),
    batch=lambda x, k: lower(x, k=k),
)
upper: Linear = Linear(
    "upper_triangle",
    np.triu,
    lambda type_, k: type_,
    lambda v, x, k: upper(v, k=k),
    batch=lambda x, k: upper(x, k=k),
)

cases(diagonal, normal(3, 4), offset=1, axis1=0, axis2=1)
cases(diagonal, normal(3, 2, 4), offset=-1, axis1=2, axis2=0, because="the diagonal becomes the last axis")
cases(on_diagonal, normal(2), shape=(3, 4), offset=-1, axis1=0, axis2=1)
cases(on_diagonal, normal(2, 3), shape=(3, 2, 4), offset=0, axis1=0, axis2=2)
for _triangle in (lower, upper):
    cases(_triangle, normal(3, 4), k=0)
    cases(_triangle, normal(2, 3, 3), k=-1)
