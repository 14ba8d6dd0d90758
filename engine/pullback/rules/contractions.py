"""Matrix products, with NumPy's rules for vectors and stacks of matrices."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import Bilinear, behind_batch, unbroadcast
from pullback.core.types import ArrayType, Shape


def _matmul_type(a: ArrayType, b: ArrayType) -> ArrayType:
    if not a.shape or not b.shape:
        raise ValueError("matmul: both operands need at least one dimension; multiply scalars with *")
    rows, columns = a.shape[-2:-1], b.shape[-1:] if len(b.shape) > 1 else ()
    if a.shape[-1] != b.shape[-2 if len(b.shape) > 1 else 0]:
        raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not fit")
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return ArrayType((*stack, *rows, *columns), np.matmul.resolve_dtypes((a.dtype, b.dtype, None))[-1])


def _as_matrices(v: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Cotangent and operands with vectors made one-column or one-row matrices."""
    if np.ndim(a) == 1:
        a = np.expand_dims(a, 0)
        v = np.expand_dims(v, -1 if np.ndim(b) == 1 else -2)
    if np.ndim(b) == 1:
        b = np.expand_dims(b, 1)
        v = np.expand_dims(v, -1)
    return v, a, b


def _transpose_a(v: Any, a: Any, b: Any) -> Any:
    shape: Shape = np.shape(a)
    if np.ndim(b) == 1 and np.ndim(a) == 2:
        return unbroadcast(np.expand_dims(v, 1) * b, shape, a.dtype)  # an outer product needs no matrix kernel
    v, a2, b2 = _as_matrices(v, a, b)
    a_bar = np.matmul(v, np.swapaxes(b2, -1, -2))
    return np.reshape(unbroadcast(a_bar, np.shape(a2), a.dtype), shape)


def _transpose_b(v: Any, a: Any, b: Any) -> Any:
    shape: Shape = np.shape(b)
    if np.ndim(b) == 1 and np.ndim(a) == 2:
        return unbroadcast(np.matmul(np.transpose(a), v), shape, b.dtype)
    v, a2, b2 = _as_matrices(v, a, b)
    b_bar = np.matmul(np.swapaxes(a2, -1, -2), v)
    return np.reshape(unbroadcast(b_bar, np.shape(b2), b.dtype), shape)


def _matmul_flops(types: Sequence[ArrayType], result: ArrayType) -> int:
    return 2 * result.size * types[0].shape[-1]


def _write_product(out: Any, a: Any, b: Any) -> Any:
    return np.matmul(a, b, out=out)


def _batch(a: Any, b: Any, batched: Sequence[bool]) -> Any:
    """A stack of products; vectors become matrices for it, and the stacks of both are lined up behind the batch axis."""
    vector_a, vector_b = np.ndim(a) - batched[0] == 1, np.ndim(b) - batched[1] == 1
    if vector_b and not batched[0] and np.ndim(a) == 2:
        return np.matmul(b, np.transpose(a))  # vectors as the rows of one matrix: one product, not one for each
    if not batched[1] and np.ndim(b) == 2 and vector_a:
        return np.matmul(a, b)
    if not batched[1] and np.ndim(b) == 2 and np.ndim(a) == 3:
        return np.reshape(np.matmul(np.reshape(a, (-1, np.shape(a)[-1])), b), (*np.shape(a)[:-1], np.shape(b)[-1]))
    a2 = np.expand_dims(a, -2) if vector_a else a
    b2 = np.expand_dims(b, -1) if vector_b else b
    rank = max(np.ndim(a2) - batched[0], np.ndim(b2) - batched[1])
    y = np.matmul(behind_batch(a2, rank) if batched[0] else a2, behind_batch(b2, rank) if batched[1] else b2)
    kept = np.shape(y)[:-2] + (() if vector_a else np.shape(y)[-2:-1]) + (() if vector_b else np.shape(y)[-1:])
    return np.reshape(y, kept)


matmul = Bilinear("matmul", np.matmul, _matmul_type, _transpose_a, _transpose_b, _matmul_flops, _write_product, _batch)

cases(matmul, normal(3, 4), normal(4, 2))
cases(matmul, normal(3, 4), normal(4), because="matrix times vector")
cases(matmul, normal(3), normal(3, 2), because="vector times matrix")
cases(matmul, normal(4), normal(4), because="inner product")
cases(matmul, normal(2, 3, 4), normal(4, 2), because="one matrix against a stack")
cases(matmul, normal(2, 1, 3, 4), normal(5, 4, 2), because="stacks that broadcast")
cases(matmul, normal(2, 3, 4), normal(4), because="a stack against a vector")
cases(matmul, normal(3), normal(2, 3, 4), because="a vector against a stack")
