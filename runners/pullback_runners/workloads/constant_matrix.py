"""A product with a constant matrix: data, a mask, a fixed operator.

    L(x, a) = sum(y**2)    y = a @ x      a (n, n) constant, x (n, batch)      x_bar = 2 a.T @ y

Zygote.jl's issue 323: the way back is one product. An engine that does not know what is constant makes a second one of
the same size, y @ x.T, and drops it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt="x",
    quick=grid(n=(100,), batch=(32,), dtype=("f4",)),
    standard=grid(n=(100, 500), batch=(32,), dtype=("f4",)),
    full=grid(n=(30, 100, 500, 2000), batch=(1, 32), dtype=("f4", "f8")),
)
def constant_matrix(n: int, batch: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum((a @ x)**2) with respect to x, a constant."""

    def loss(x: Any, a: Any) -> Any:
        return np.sum((a @ x) ** 2)

    return loss


@constant_matrix.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int, batch: int) -> Inputs:
    return {
        "x": rng.standard_normal((n, batch)).astype(dtype),
        "a": (rng.standard_normal((n, n)) / np.sqrt(n)).astype(dtype),
    }


@constant_matrix.oracle
def _(x: Any, a: Any, *, n: int, batch: int) -> ValueAndGradients:  # noqa: ARG001
    # By the matrix of the quadratic form, column by column of x: other products in another order.
    form = a.T @ a
    return float(np.einsum("ib,ij,jb->", x, form, x, optimize=True)), {"x": 2.0 * (form @ x)}


@constant_matrix.peer("numpy")
def _(x: Any, a: Any, *, n: int, batch: int) -> ValueAndGradients:  # noqa: ARG001
    y = a @ x
    value = np.vdot(y, y)
    y *= 2
    return value, {"x": a.T @ y}
