"""A matrix product: its sizes, and the layouts of its matrices."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.backends.native.emission import StoredArray
from pullback.core.types import Shape
from pullback.dataclass import dataclass

#: Strides of a matrix in elements: between rows, and between columns.
Strides = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Product:
    """C = alpha A B, or C += alpha A B: A has m x k numbers, B has k x n, at each place of a batch.

    Strides are in elements; a stride of 0 repeats a matrix over the batch. The dtype is that of C, in which it is computed.
    """

    m: int
    n: int
    k: int
    a_strides: Strides
    b_strides: Strides
    c_strides: Strides
    dtype: np.dtype[Any]
    a_dtype: np.dtype[Any]
    b_dtype: np.dtype[Any]
    batch: Shape = ()
    a_batch: tuple[int, ...] = ()
    b_batch: tuple[int, ...] = ()
    c_batch: tuple[int, ...] = ()
    accumulate: bool = False
    alpha: float = 1.0

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to write."""
        return 0 in (self.m, self.n, *self.batch)

    @property
    def multiplications(self) -> int:
        """The number of multiplications at each place of the batch."""
        return self.m * self.n * self.k

    def transposed(self) -> "Product":
        """The same numbers as C' = B' A'."""
        return replace(
            self,
            m=self.n,
            n=self.m,
            a_strides=self.b_strides[::-1],
            b_strides=self.a_strides[::-1],
            c_strides=self.c_strides[::-1],
            a_dtype=self.b_dtype,
            b_dtype=self.a_dtype,
            a_batch=self.b_batch,
            b_batch=self.a_batch,
        )

    def simplified(self) -> "Product":
        """The same product with as few axes in its batch as strides allow."""
        return _into_columns(_into_rows(_joined(self)))


def described(a: StoredArray, b: StoredArray, c: StoredArray) -> Product:
    """The product that NumPy's matmul of two arrays is: vectors are matrices of one row or one column."""
    a_shape, a_strides = (a.shape, a.strides) if len(a.shape) > 1 else ((1, *a.shape), (0, *a.strides))
    b_shape, b_strides = (b.shape, b.strides) if len(b.shape) > 1 else ((*b.shape, 1), (*b.strides, 0))
    rank = max(len(a_shape), len(b_shape)) - 2
    batch, c_strides = c.shape[:rank], list(c.strides[rank:])
    row = c_strides.pop(0) if len(a.shape) > 1 else 0
    column = c_strides.pop(0) if len(b.shape) > 1 else 0
    return Product(
        *(a_shape[-2], b_shape[-1], a_shape[-1]),
        (a_strides[-2], a_strides[-1]),
        (b_strides[-2], b_strides[-1]),
        (row, column),
        *(c.dtype, a.dtype, b.dtype),
        batch,
        _repeated(a_shape[:-2], a_strides[:-2], batch),
        _repeated(b_shape[:-2], b_strides[:-2], batch),
        c.strides[:rank],
    )


def _repeated(shape: Shape, strides: tuple[int, ...], batch: Shape) -> tuple[int, ...]:
    """Strides of a stack of matrices along the batch it is broadcast to."""
    own = [0 if size == 1 else stride for size, stride in zip(shape, strides, strict=True)]
    return (0,) * (len(batch) - len(own)) + tuple(own)


def _joined(product: Product) -> Product:
    """Axes of the batch that follow each other in all three matrices, as one; those of one place left out."""
    axes: list[tuple[int, int, int, int]] = []
    for axis in zip(product.batch, product.a_batch, product.b_batch, product.c_batch, strict=True):
        if axis[0] == 1:
            continue
        if axes and all(outer == axis[0] * inner for outer, inner in zip(axes[-1][1:], axis[1:], strict=True)):
            axes[-1] = (axes[-1][0] * axis[0], *axis[1:])
        else:
            axes.append(axis)
    return _with_batch(product, axes)


def _with_batch(product: Product, axes: list[tuple[int, int, int, int]]) -> Product:
    batch, a, b, c = zip(*axes, strict=True) if axes else ((), (), (), ())
    return replace(product, batch=batch, a_batch=a, b_batch=b, c_batch=c)


def _into_rows(product: Product) -> Product:
    """A batch of A against one B is one taller A, where its rows follow each other."""
    axes = list(zip(product.batch, product.a_batch, product.b_batch, product.c_batch, strict=True))
    for number, (size, a, b, c) in enumerate(axes):
        if b != 0:
            continue
        rest = _with_batch(product, axes[:number] + axes[number + 1 :])
        if product.m == 1:
            taller = replace(rest, m=size, a_strides=(a, product.a_strides[1]), c_strides=(c, product.c_strides[1]))
            return _into_rows(taller)
        if (a, c) == (product.m * product.a_strides[0], product.m * product.c_strides[0]):
            return _into_rows(replace(rest, m=product.m * size))
    return product


def _into_columns(product: Product) -> Product:
    return _into_rows(product.transposed()).transposed()


def places(product: Product) -> int:
    """The number of matrices in the batch."""
    return math.prod(product.batch)
