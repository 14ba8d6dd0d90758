"""Gradients computed a hundred times a call, and a hundred and one or two times: slowdowns of exactly 1 % and 2 % by count.

Three kinds of work, so that no one kind's noise decides: a tape in plain Python, NumPy on small fresh arrays, and a native
program of our engine. `sum(x**2)` is differentiated; what counts is how often.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads import Inputs, ValueAndGradients, Workload, grid, workload

TIMES = {"hundred": 100, "hundred-and-one": 101, "hundred-and-two": 102}
"""Peers by how often they compute the same gradient; the last one is returned."""

Unit = Callable[[Any], ValueAndGradients]


def _square_sum(x: Any) -> Any:
    return np.sum(x * x)


@workload(wrt="x", quick=grid(n=(4,), dtype=("f8",)))
def counted_tape(n: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(x**2) by a tape of closures, a scalar at a time."""
    return _square_sum


@workload(wrt="x", quick=grid(n=(64,), dtype=("f8",)))
def counted_arrays(n: int) -> Callable[..., Any]:  # noqa: ARG001 - as above
    """sum(x**2) by NumPy, two fresh arrays each time."""
    return _square_sum


@workload(wrt="x", quick=grid(n=(60,), dtype=("f8",)))
def counted_native(n: int) -> Callable[..., Any]:  # noqa: ARG001 - as above
    """sum(x**2) by a native program."""
    return _square_sum


def _by_tape(x: Any) -> ValueAndGradients:
    tape: list[Callable[[list[float]], None]] = []
    total = 0.0
    for place, value in enumerate(x.tolist()):
        total += value * value

        def back(x_bar: list[float], place: int = place, value: float = value) -> None:
            x_bar[place] += 2.0 * value

        tape.append(back)
    x_bar = [0.0] * len(tape)
    for step in reversed(tape):
        step(x_bar)
    return total, {"x": np.array(x_bar)}


def _by_arrays(x: Any) -> ValueAndGradients:
    squares = x * x
    return squares.sum(), {"x": 2.0 * x}


_native = pb.compile(pb.value_and_grad(_square_sum, wrt="x"), tier="native")


def _by_native(x: Any) -> ValueAndGradients:
    value, gradient = _native(x)
    return value, {"x": gradient}


def _declare(declared: Workload, unit: Unit) -> None:
    @declared.inputs
    def draw(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Inputs:
        return {"x": rng.standard_normal(n).astype(dtype)}

    @declared.oracle
    def closed_form(x: Any, *, n: int) -> ValueAndGradients:  # noqa: ARG001 - every size parameter is passed
        return np.sum(x**2), {"x": 2 * x}

    for name, times in TIMES.items():

        @declared.peer(name)
        def run(x: Any, *, n: int, turns: range = range(times)) -> ValueAndGradients:  # noqa: ARG001 - as above
            for _ in turns:
                result = unit(x)
            return result


_declare(counted_tape, _by_tape)
_declare(counted_arrays, _by_arrays)
_declare(counted_native, _by_native)
