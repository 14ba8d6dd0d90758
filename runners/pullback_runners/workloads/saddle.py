"""The largest value over y of a function of x and y, found by descent, and its gradient by x: derivatives in derivatives.

    f(x, y) = |x|^2 - |y|^2      V(x) = max over y of f(x, y)      V'(x) = 2 x

The search for y (`descent`) uses gradients of f by one mode, the gradient of V by x goes through the whole search by
another: `mode` names the outer and then the inner one, f forward and r reverse. GradBench's eval then descends V itself,
which is `saddle_point`: a search in a search.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.workloads.case import Parameter
from pullback_runners.workloads.descent import differentiated, loop_for, minimum, until_done
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

LIMIT = 256
"""Steps of a search in reverse mode; from (1, 1) it takes about 180."""

MODES = ("rr", "ff", "fr", "rf")


def surface(x: Any, y: Any) -> Any:
    """f(x, y)."""
    return np.sum(x * x) - np.sum(y * y)


def highest(x: Any, start: Any, *, outer: str, inner: str, limit: int) -> tuple[Any, Any]:
    """The best y, and f there; NaN where the search took more than `limit` steps."""
    loop = loop_for(outer, limit)
    y, ended = minimum(differentiated(lambda y: -surface(x, y), inner), start, loop)
    return y, np.where(ended, surface(x, y), np.nan)


def saddle_point(mode: str, limit: int = LIMIT) -> Callable[[Any], tuple[Any, Any]]:
    """The function of a start that gives x and y one after the other, and whether no search was cut short."""
    outer, inner = tuple(mode)

    def search(start: Any) -> tuple[Any, Any]:
        def value(x: Any) -> Any:
            return highest(x, start, outer=outer, inner=inner, limit=limit)[1]

        x, ended = minimum(differentiated(value, outer), start, until_done)
        # The second search, for y at that x, is differentiated by nothing.
        y, found = highest(x, start, outer="f", inner=inner, limit=limit)
        return np.concatenate([x, y]), np.logical_and(ended, np.isfinite(found))

    return search


@workload(
    wrt="x",
    quick=grid(mode=("rr",)),
    standard=grid(mode=MODES),
    full=grid(mode=MODES),
)
def saddle(mode: str) -> Callable[..., Any]:
    """Gradient through a search by gradients, in every pair of modes."""
    outer, inner = tuple(mode)

    def value(x: Any, start: Any) -> Any:
        return highest(x, start, outer=outer, inner=inner, limit=LIMIT)[1]

    return value


@saddle.derivative("x")
def _(pb: Any, function: Callable[..., Any], mode: str) -> Callable[..., Any]:  # noqa: ARG001
    def nested(x: Any, start: Any) -> tuple[Any, tuple[Any, ...]]:
        value, gradient = differentiated(lambda x: function(x, start), mode[0])(x)
        return value, (gradient,)

    return nested


@saddle.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], mode: Parameter) -> Inputs:  # noqa: ARG001
    return {"x": rng.uniform(0.5, 1.5, 2).astype(dtype), "start": rng.uniform(0.9, 1.1, 2).astype(dtype)}


@saddle.oracle
def _(x: Any, start: Any, *, mode: str) -> ValueAndGradients:  # noqa: ARG001
    # The same search in plain numbers, with the gradient -2 y.
    y, step, successes = start, 1e-5, 0
    while np.linalg.norm(2 * y) > 1e-5:
        if successes == 10:
            step, successes = 2 * step, 0
            continue
        there = y - step * 2 * y
        if np.linalg.norm(y - there) <= 1e-5:
            break
        if there @ there < y @ y:
            y, successes = there, successes + 1
        else:
            step, successes = step / 2, 0
    return x @ x - y @ y, {"x": 2 * x}
