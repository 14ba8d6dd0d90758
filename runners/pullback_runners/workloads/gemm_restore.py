"""BLAS's general product into a matrix that is overwritten and must be put back, with its scale factors.

    L(a, b, c) = sum((c <- alpha op(a) @ op(b) + beta c)**2)     op is the matrix or its transpose, c (m, n) overwritten

With y the new content of c, and for a and b not transposed:

    a_bar = 2 alpha y @ b.T     b_bar = 2 alpha a.T @ y     c_bar = 2 beta y

Mooncake.jl's issue 403 and its rule of `gemm!`: c is an operand and the target at once, so its old content is needed in
reverse and must be there again afterwards, bit for bit. `mul_restore` is the case alpha = 1, beta = 0, nothing transposed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

ALPHA, BETA = 0.75, -0.5


@workload(
    wrt=("a", "b", "c"),
    quick=grid(m=(16,), k=(32,), n=(8,), trans_a=("N",), trans_b=("N",), dtype=("f8",)),
    standard=grid(m=(16,), k=(32,), n=(8,), trans_a=("N", "T"), trans_b=("N",), dtype=("f8",))
    + grid(m=(128,), k=(128,), n=(128,), trans_a=("N",), trans_b=("T",), dtype=("f8",)),
    full=grid(m=(16,), k=(32,), n=(8,), trans_a=("N", "T"), trans_b=("N", "T"), dtype=("f4", "f8"))
    + grid(m=(128,), k=(128,), n=(128,), trans_a=("N", "T"), trans_b=("N", "T"), dtype=("f4", "f8"))
    + grid(m=(512,), k=(512,), n=(512,), trans_a=("N",), trans_b=("N",), dtype=("f8",)),
)
def gemm_restore(m: int, k: int, n: int, trans_a: str, trans_b: str) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum((c <- alpha op(a) @ op(b) + beta c)**2) with respect to a, b and c, c restored."""

    def loss(a: Any, b: Any, c: Any) -> Any:
        return np.sum(pb.inplace.gemm(c, a, b, ALPHA, BETA, trans_a=trans_a, trans_b=trans_b) ** 2)

    return loss


@gemm_restore.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], m: int, k: int, n: int, trans_a: str, trans_b: str) -> Inputs:
    return {
        "a": rng.standard_normal((k, m) if trans_a == "T" else (m, k)).astype(dtype),
        "b": rng.standard_normal((n, k) if trans_b == "T" else (k, n)).astype(dtype),
        "c": rng.standard_normal((m, n)).astype(dtype),
    }


def _turned(matrix: Any, flag: str) -> Any:
    return matrix.T if flag == "T" else matrix


@gemm_restore.oracle
def _(a: Any, b: Any, c: Any, *, m: int, k: int, n: int, trans_a: str, trans_b: str) -> ValueAndGradients:  # noqa: ARG001
    # Sums of outer products instead of BLAS: another order of summation, the same product.
    a, b = _turned(a, trans_a), _turned(b, trans_b)
    y = ALPHA * sum(np.outer(a[:, i], b[i, :]) for i in range(k)) + BETA * c
    a_bar = 2 * ALPHA * np.einsum("mn,kn->mk", y, b)
    b_bar = 2 * ALPHA * np.einsum("mk,mn->kn", a, y)
    return np.sum(y**2), {"a": _turned(a_bar, trans_a), "b": _turned(b_bar, trans_b), "c": 2 * BETA * y}


@gemm_restore.peer("numpy")
def _(a: Any, b: Any, c: Any, *, m: int, k: int, n: int, trans_a: str, trans_b: str) -> ValueAndGradients:  # noqa: ARG001
    before = c.copy()
    product = _turned(a, trans_a) @ _turned(b, trans_b)
    product *= ALPHA
    c *= BETA
    c += product
    value = np.vdot(c, c)
    y_bar = np.multiply(c, 2 * ALPHA, out=product)
    a_bar = y_bar @ _turned(b, trans_b).T if trans_a == "N" else _turned(b, trans_b) @ y_bar.T
    b_bar = _turned(a, trans_a).T @ y_bar if trans_b == "N" else y_bar.T @ _turned(a, trans_a)
    c_bar = c * (2 * BETA)
    c[...] = before
    return value, {"a": a_bar, "b": b_bar, "c": c_bar}
