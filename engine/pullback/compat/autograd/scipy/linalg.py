"""`pullback.scipy.linalg`, and banded systems."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from pullback.compat.autograd.primitives import (
    defjvp,
    defvjp,
    primitive,
)
from pullback.namespaces import the_rest_of

__all__ = ["solve_banded"]


@primitive
def solve_banded(l_and_u: tuple[int, int], ab: Any, b: Any) -> Any:
    """X with A x = b, A given by its diagonals: `ab[u + i - j, j] == A[i, j]`."""
    return scipy.linalg.solve_banded(l_and_u, ab, b)


def _diagonals(l_and_u: tuple[int, int]) -> list[int]:
    """Offsets j - i of the diagonals, in the order of the rows of `ab`."""
    lower, upper = l_and_u
    return list(range(upper, -lower - 1, -1))


def _shifted(v: Any, offset: int) -> Any:
    """`v[i + offset]` at i, zero where that is outside."""
    n = np.shape(v)[0]
    inside = (np.arange(n) + offset >= 0) & (np.arange(n) + offset < n)
    return np.where(np.reshape(inside, (n,) + (1,) * (np.ndim(v) - 1)), np.roll(v, -offset, axis=0), 0.0)


def _transposed(l_and_u: tuple[int, int], ab: Any) -> Any:
    """The diagonals of the transpose: the same, in the other order, each moved along."""
    return np.stack([_shifted(ab[row], offset) for row, offset in enumerate(_diagonals(l_and_u))][::-1])


def _banded_pulled(ans: Any, l_and_u: tuple[int, int], ab: Any, b: Any) -> Callable[[Any], Any]:
    def pullback(g: Any) -> Any:
        b_bar = _banded_by_b(ans, l_and_u, ab, b)(g)
        rows = [-_shifted(b_bar, -offset) * ans for offset in _diagonals(l_and_u)]
        return np.stack([row if np.ndim(row) == 1 else np.sum(row, axis=1) for row in rows])

    return pullback


def _banded_by_b(ans: Any, l_and_u: tuple[int, int], ab: Any, b: Any) -> Callable[[Any], Any]:
    return lambda g: solve_banded(l_and_u[::-1], _transposed(l_and_u, ab), g)


def _banded_pushed(g: Any, ans: Any, l_and_u: tuple[int, int], ab: Any, b: Any) -> Any:
    columns = (-1,) + (1,) * (np.ndim(ans) - 1)
    moved = sum(_shifted(np.reshape(g[row], columns) * ans, offset) for row, offset in enumerate(_diagonals(l_and_u)))
    return solve_banded(l_and_u, ab, -moved)


defvjp(solve_banded, None, _banded_pulled, _banded_by_b)
defjvp(solve_banded, None, _banded_pushed, lambda g, ans, l_and_u, ab, b: solve_banded(l_and_u, ab, g))


__getattr__, __dir__ = the_rest_of("pullback.scipy.linalg", __name__)
