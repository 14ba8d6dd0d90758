"""The determinant by expansion into minors along the rows, every minor computed once.

    det(A) = D(all columns)    D(S) = sum over the i-th of the columns S of (-1)^i A[n - |S|, S_i] D(S without S_i)

    A_bar = det(A) inv(A).T

D(S) is the minor of the last |S| rows and the columns S, so there are 2^n of them, where the plain recursion visits n!.
Minors of one size are one array: what is recursive in the formula is n steps, each of two reads by positions.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from pullback_runners.errors import UsageError
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

LARGEST = 20
"""The tables of 2^20 minors hold 10^7 positions; beyond they are no longer something to keep in memory."""


@lru_cache(maxsize=32)
def minors(n: int) -> list[tuple[Any, Any]]:
    """The columns of every minor of sizes 1 to n, and the minors of the next smaller size that each needs."""
    if n > LARGEST:
        raise UsageError(
            f"expansion into minors of a matrix of {n} rows needs 2^{n} of them; give one of {LARGEST} at most"
        )
    tables = []
    below: dict[tuple[int, ...], int] = {(): 0}
    for size in range(1, n + 1):
        here = list(combinations(range(n), size))
        needed = [[below[columns[:i] + columns[i + 1 :]] for i in range(size)] for columns in here]
        tables.append((np.array(here), np.array(needed)))
        below = {columns: number for number, columns in enumerate(here)}
    return tables


def determinant(n: int) -> Callable[[Any], Any]:
    """The function of A (n, n) that gives its determinant."""
    tables = minors(n)[1:]

    def expand(a: Any) -> Any:
        found = a[n - 1]  # the minors of size 1
        for size, (columns, needed) in enumerate(tables, start=2):
            signs = np.where(np.arange(size) % 2, -1.0, 1.0).astype(a.dtype)
            found = np.sum(signs * a[n - size][columns] * found[needed], axis=1)
        return found[0]

    return expand


@workload(wrt="a", quick=grid(n=(5,)), standard=grid(n=(5, 9)), full=grid(n=(5, 7, 9, 11)))
def det(n: int) -> Callable[..., Any]:
    """Determinant by expansion into minors with respect to the matrix."""
    return determinant(n)


@det.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Inputs:
    return {"a": rng.uniform(size=(n, n)).astype(dtype)}


@det.oracle
def _(a: Any, *, n: int) -> ValueAndGradients:  # noqa: ARG001
    value = np.linalg.det(a)
    return value, {"a": value * np.linalg.inv(a).T}


@det.peer("numpy")
def _(a: Any, *, n: int) -> ValueAndGradients:
    # Down and up through the same tables: cotangents of minors by their columns and by what they are made of.
    tables = minors(n)
    found = [np.ones(1, a.dtype)]
    for size, (columns, needed) in enumerate(tables, start=1):
        signs = np.where(np.arange(size) % 2, -1.0, 1.0).astype(a.dtype)
        found.append((signs * a[n - size][columns] * found[-1][needed]).sum(1))
    a_bar, bar = np.zeros_like(a), np.ones(1, a.dtype)
    for size in range(n, 0, -1):
        columns, needed = tables[size - 1]
        signs = np.where(np.arange(size) % 2, -1.0, 1.0).astype(a.dtype) * bar[:, None]
        np.add.at(a_bar[n - size], columns, signs * found[size - 1][needed])
        below = np.zeros_like(found[size - 1])
        np.add.at(below, needed, signs * a[n - size][columns])
        bar = below
    return found[n][0], {"a": a_bar}
