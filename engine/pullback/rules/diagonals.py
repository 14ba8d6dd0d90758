"""Diagonals and triangles of matrices."""

from functools import lru_cache
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.constant_arrays import number
from pullback.core.kinds import Linear
from pullback.core.types import ArrayType, Shape


def _diagonal_type(type_: ArrayType, offset: int, axis1: int, axis2: int) -> ArrayType:
    probe = np.broadcast_to(np.zeros((), type_.dtype), type_.shape).diagonal(offset, axis1, axis2)
    return ArrayType(probe.shape, type_.dtype)


def _on_diagonal(v: Any, shape: Shape, offset: int, axis1: int, axis2: int) -> Any:
    x = np.zeros(shape, v.dtype)
    k = np.arange(v.shape[-1])
    np.moveaxis(x, (axis1, axis2), (-2, -1))[..., k + max(-offset, 0), k + max(offset, 0)] = v
    return x


def _write_on_diagonal(out: Any, v: Any, shape: Shape, offset: int, axis1: int, axis2: int) -> None:
    out.fill(0)
    target = out.diagonal(offset, axis1, axis2)
    target.setflags(write=True)  # NumPy gives it read-only
    np.copyto(target, v)


@lru_cache(maxsize=256)
def _outside(rows: int, columns: int, k: int, *, is_lower: bool) -> Any:
    return ~np.tri(rows, columns, k, dtype=bool) if is_lower else np.tri(rows, columns, k - 1, dtype=bool)


def _write_triangle(out: Any, x: Any, k: int, *, is_lower: bool) -> None:
    np.copyto(out, x)
    np.copyto(out, number(0, out.dtype), where=_outside(*x.shape[-2:], k, is_lower=is_lower))


diagonal: Linear = Linear(
    "diagonal",
    lambda x, offset, axis1, axis2: np.array(x.diagonal(offset, axis1, axis2)),
    _diagonal_type,
    lambda v, x, offset, axis1, axis2: on_diagonal(v, shape=np.shape(x), offset=offset, axis1=axis1, axis2=axis2),
    into=lambda out, x, offset, axis1, axis2: np.copyto(out, x.diagonal(offset, axis1, axis2)),
    batch=lambda x, offset, axis1, axis2: diagonal(x, offset=offset, axis1=axis1 + 1, axis2=axis2 + 1),
)
on_diagonal: Linear = Linear(
    "on_diagonal",
    _on_diagonal,
    lambda type_, shape, offset, axis1, axis2: ArrayType(shape, type_.dtype),
    lambda v, x, shape, offset, axis1, axis2: diagonal(v, offset=offset, axis1=axis1, axis2=axis2),
    into=_write_on_diagonal,
    batch=lambda x, shape, offset, axis1, axis2: on_diagonal(
        x, shape=(np.shape(x)[0], *shape), offset=offset, axis1=axis1 + 1, axis2=axis2 + 1
    ),
)
lower: Linear = Linear(
    "lower_triangle",
    np.tril,
    lambda type_, k: type_,
    lambda v, x, k: lower(v, k=k),
    into=lambda out, x, k: _write_triangle(out, x, k, is_lower=True),
    batch=lambda x, k: lower(x, k=k),
)
upper: Linear = Linear(
    "upper_triangle",
    np.triu,
    lambda type_, k: type_,
    lambda v, x, k: upper(v, k=k),
    into=lambda out, x, k: _write_triangle(out, x, k, is_lower=False),
    batch=lambda x, k: upper(x, k=k),
)

cases(diagonal, normal(3, 4), offset=1, axis1=0, axis2=1)
cases(diagonal, normal(3, 2, 4), offset=-1, axis1=2, axis2=0, because="the diagonal becomes the last axis")
cases(on_diagonal, normal(2), shape=(3, 4), offset=-1, axis1=0, axis2=1)
cases(on_diagonal, normal(2, 3), shape=(3, 2, 4), offset=0, axis1=0, axis2=2)
for _triangle in (lower, upper):
    cases(_triangle, normal(3, 4), k=0)
    cases(_triangle, normal(2, 3, 3), k=-1)
