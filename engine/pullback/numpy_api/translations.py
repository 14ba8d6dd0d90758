"""The table of translations of NumPy functions, which the families beside this file fill.

A translation has NumPy's own signature, normalises what the caller may write in many ways (axes, shapes, keys), and calls
primitives with the one form they take. What it does not honour it refuses; nothing is ignored in silence.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback.errors import TracingError

FUNCTIONS: dict[Any, Callable[..., Any]] = {}


def implements(*numpy_functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the translation of a NumPy function."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for numpy_function in numpy_functions:
            FUNCTIONS[numpy_function] = function
        return function

    return register


@cache
def results_of(function: Any) -> Any:
    """The named tuple in which a NumPy function returns several results; NumPy does not export it."""
    return type(function(np.eye(1)))


def normalized_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as a sorted tuple of non-negative integers; None means all."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axis, ndim)))


def refuse(function: str, **options: Any) -> None:
    """Raise an error for an option of a NumPy function that cannot be traced."""
    for name, value in options.items():
        if value is not None:
            raise TracingError(f"{function}(…, {name}=…) cannot be differentiated; leave {name} out")
