"""Gradients of diffcp: of the solution of a linear program by the right-hand side of its constraints."""

import diffcp
import numpy as np
from scipy import sparse

from pullback_runners.workloads import grid, workload

SIZES = {"quick": grid(n=(10, 20), dtype=("f4",)), "standard": grid(n=(10, 20), dtype=("f4",))}


@workload(wrt="b", numpy=False, **SIZES)
def linear_program(n):
    """the sum of the solution of a linear program whose constraints are all active, by their right-hand side"""


@linear_program.inputs
def _(rng, dtype, n):
    return {
        "a": (np.eye(n) + 0.3 * rng.standard_normal((n, n)) / np.sqrt(n)).astype(dtype),
        "b": rng.uniform(0.5, 1.5, n).astype(dtype),
    }


@linear_program.oracle
def _(a, b, *, n):
    return np.sum(np.linalg.solve(a, b)), {"b": np.linalg.solve(a.T, np.ones(n))}


@linear_program.variant("diffcp")
def _(a, b, *, n):
    matrix, cost = sparse.csc_matrix(a.astype(float)), -a.astype(float).sum(axis=0)

    def step():
        x, _, _, _, adjoint = diffcp.solve_and_derivative(
            matrix, b.astype(float), cost, {"l": n}, solve_method="SCS", eps=1e-10, verbose=False
        )
        _, db, _ = adjoint(np.ones(n), np.zeros(n), np.zeros(n))
        return np.float32(x.sum()), db.astype(np.float32)

    return step
