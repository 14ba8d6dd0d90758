"""The polynomial of `poly9_broadcast` as one writes it down, with its powers.

    f(x, c0 ... c9) = sum over x of (c0 + c1 x + c2 x**2 + ... + c9 x**9)      df/dc2 = sum(x**2)

The form of Zygote.jl's issue 323. What an engine makes of nine powers of one array (nine calls of pow, repeated squaring,
one chain of products, Horner's rule) is part of what is measured.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.workloads.poly9_broadcast import by_hand, draw, power_sums
from pullback_runners.workloads.registry import grid, workload


@workload(
    wrt="c2",
    quick=grid(n=(1_000,), dtype=("f8",)),
    standard=grid(n=(1_000, 100_000), dtype=("f8",)),
    full=grid(n=(100, 1_000, 100_000, 10_000_000), dtype=("f4", "f8")),
)
def poly9_powers(n: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(c0 + c1 x + ... + c9 x**9), written with powers, with respect to c2."""

    def total(x: Any, c0: Any, c1: Any, c2: Any, c3: Any, c4: Any, c5: Any, c6: Any, c7: Any, c8: Any, c9: Any) -> Any:
        low = c0 + c1 * x + c2 * x**2 + c3 * x**3 + c4 * x**4
        return np.sum(low + c5 * x**5 + c6 * x**6 + c7 * x**7 + c8 * x**8 + c9 * x**9)

    return total


poly9_powers.inputs(draw)
poly9_powers.oracle(power_sums)
poly9_powers.peer("numpy")(by_hand)
