"""A function that overwrites a matrix and calls itself before its pullback has run.

    down(x, 0) = x      down(x, d) = down(c <- a @ x, d - 1)      L(a, x) = sum(down(x, depth)**2)

c (n, n) is one matrix, written to at every depth: x is read from it and written back into it. With x_d = a**d @ x:

    x_bar = (a.T)**depth @ 2 x_depth      a_bar = sum over d of (a.T)**(depth - 1 - d) @ 2 x_depth @ x_d.T

What Mooncake.jl's issue 403 leaves open: a rule that keeps what it saved in one place of its own overwrites it at the
second visit before the first has been pulled back. Saved contents must be a stack.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt=("a", "x"),
    quick=grid(n=(8,), depth=(10,), dtype=("f8",)),
    standard=grid(n=(8, 32), depth=(10,), dtype=("f8",)),
    full=grid(n=(8, 32, 128), depth=(2, 10, 50), dtype=("f4", "f8")),
)
def recursive_mul(n: int, depth: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum((a**depth @ x)**2) by a recursion that overwrites one matrix, with respect to a and x."""

    def down(a: Any, x: Any, c: Any, levels: int) -> Any:
        if levels == 0:
            return x
        product = pb.inplace.matmul(c, a, x)
        return down(a, product, product, levels - 1)

    def loss(a: Any, x: Any, c: Any) -> Any:
        return np.sum(down(a, x, c, depth) ** 2)

    return loss


@recursive_mul.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int, depth: int) -> Inputs:  # noqa: ARG001
    # An orthogonal matrix and a little more: its powers neither vanish nor overflow.
    turn, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return {
        "a": (turn + 0.1 * rng.standard_normal((n, n)) / np.sqrt(n)).astype(dtype),
        "x": rng.standard_normal((n, n)).astype(dtype),
        "c": rng.standard_normal((n, n)).astype(dtype),
    }


@recursive_mul.oracle
def _(a: Any, x: Any, c: Any, *, n: int, depth: int) -> ValueAndGradients:
    assert c.shape == (n, n)  # noqa: S101 - an invariant of our own inputs
    # By powers of a, each from the definition, instead of step by step.
    powers = [np.linalg.matrix_power(a, d) for d in range(depth + 1)]
    last = powers[depth] @ x
    a_bar = sum(powers[depth - 1 - d].T @ (2 * last) @ (powers[d] @ x).T for d in range(depth))
    return np.sum(last**2), {"a": a_bar, "x": powers[depth].T @ (2 * last)}


@recursive_mul.peer("numpy")
def _(a: Any, x: Any, c: Any, *, n: int, depth: int) -> ValueAndGradients:  # noqa: ARG001
    states = [x]
    for _ in range(depth):
        states.append(a @ states[-1])
    value = np.vdot(states[-1], states[-1])
    x_bar = 2 * states[-1]
    a_bar = np.zeros_like(a)
    for state in reversed(states[:-1]):
        a_bar += x_bar @ state.T
        x_bar = a.T @ x_bar
    return value, {"a": a_bar, "x": x_bar}
