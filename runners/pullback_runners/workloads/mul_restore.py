"""A matrix product that overwrites its target, which the pullback must put back.

    L(a, b, c) = sum((c <- a @ b)**2)      a (m, k), b (k, n), c (m, n) overwritten

    a_bar = 2 (a @ b) @ b.T     b_bar = 2 a.T @ (a @ b)     c_bar = 0, not asked for

Mooncake.jl's issue 403, at its size (16 x 32 by 32 x 8, double precision). The old content of c must be there again
after the pullback, bit for bit: it holds NaN payloads, negative zeros and subnormal numbers, and the gradient check
compares the bytes of every argument before and after.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt=("a", "b"),
    quick=grid(m=(16,), k=(32,), n=(8,), dtype=("f8",)),
    standard=grid(m=(16,), k=(32,), n=(8,), dtype=("f8",)) + grid(m=(128,), k=(128,), n=(128,), dtype=("f8",)),
    full=grid(m=(16,), k=(32,), n=(8,), dtype=("f4", "f8"))
    + grid(m=(128,), k=(128,), n=(128,), dtype=("f4", "f8"))
    + grid(m=(512,), k=(512,), n=(512,), dtype=("f8",)),
)
def mul_restore(m: int, k: int, n: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum((c <- a @ b)**2) with respect to a and b, c restored."""

    def loss(a: Any, b: Any, c: Any) -> Any:
        return np.sum(pb.inplace.matmul(c, a, b) ** 2)

    return loss


@mul_restore.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], m: int, k: int, n: int) -> Inputs:
    c = rng.standard_normal((m, n)).astype(dtype)
    c.flat[0] = -0.0
    c.flat[1] = np.nan
    c.flat[2] = -np.inf
    c.flat[3] = np.finfo(dtype).smallest_subnormal
    # The lowest bit of a NaN is payload: arithmetic may lose it, a copy may not.
    c.view(f"u{dtype.itemsize}").flat[1] |= 1
    return {
        "a": rng.standard_normal((m, k)).astype(dtype),
        "b": rng.standard_normal((k, n)).astype(dtype),
        "c": c,
    }


@mul_restore.oracle
def _(a: Any, b: Any, c: Any, *, m: int, k: int, n: int) -> ValueAndGradients:
    assert c.shape == (m, n)  # noqa: S101 - an invariant of our own inputs
    # Sums of outer products instead of BLAS: another order of summation, the same product.
    product = sum(np.outer(a[:, i], b[i, :]) for i in range(k))
    y_bar = 2.0 * product
    return np.sum(product**2), {
        "a": np.einsum("mn,kn->mk", y_bar, b),
        "b": np.einsum("mk,mn->kn", a, y_bar),
    }


@mul_restore.peer("numpy")
def _(a: Any, b: Any, c: Any, *, m: int, k: int, n: int) -> ValueAndGradients:  # noqa: ARG001
    before = c.copy()
    np.matmul(a, b, out=c)
    value = np.vdot(c, c)
    y_bar = 2 * c
    a_bar = y_bar @ b.T
    b_bar = a.T @ y_bar
    c[...] = before
    return value, {"a": a_bar, "b": b_bar}
