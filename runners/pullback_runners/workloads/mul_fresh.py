"""The product of `mul_restore` into a new array: nothing is overwritten, so nothing is put back.

    L(a, b) = sum((a @ b)**2)      a (m, k), b (k, n)

What the two differ by in time is what overwriting and restoring cost.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt=("a", "b"),
    quick=grid(m=(16,), k=(32,), n=(8,), dtype=("f8",)),
    standard=grid(m=(16,), k=(32,), n=(8,), dtype=("f8",)) + grid(m=(128,), k=(128,), n=(128,), dtype=("f8",)),
    full=grid(m=(16,), k=(32,), n=(8,), dtype=("f4", "f8"))
    + grid(m=(128,), k=(128,), n=(128,), dtype=("f4", "f8"))
    + grid(m=(512,), k=(512,), n=(512,), dtype=("f8",)),
)
def mul_fresh(m: int, k: int, n: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum((a @ b)**2) with respect to a and b."""

    def loss(a: Any, b: Any) -> Any:
        return np.sum((a @ b) ** 2)

    return loss


@mul_fresh.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], m: int, k: int, n: int) -> Inputs:
    return {"a": rng.standard_normal((m, k)).astype(dtype), "b": rng.standard_normal((k, n)).astype(dtype)}


@mul_fresh.oracle
@mul_fresh.peer("numpy")
def _(a: Any, b: Any, **sizes: int) -> ValueAndGradients:  # noqa: ARG001
    y_bar = a @ b
    value = np.vdot(y_bar, y_bar)
    y_bar *= 2
    return value, {"a": y_bar @ b.T, "b": a.T @ y_bar}
