"""ode: a chain of differential equations by Runge and Kutta's method, and the gradient of its last element."""

from math import isqrt
from typing import Any

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, PreparedFunction, array, listed, whole
from pullback_runners.workloads.ode import solution

MODULE = Module("ode")

SAVED = 2**22
"""Numbers of all steps together from which on only some steps are saved and the others computed again: 32 MiB an array."""


def _read(given: Input) -> tuple[int, Any]:
    return whole(given, "s"), array(given, "x", None)


@MODULE.function("primal")
def _(engine: Engine, given: Input) -> PreparedFunction:
    steps, x = _read(given)
    plan = engine.plan(("ode.primal", steps, len(x)), lambda: solution(steps))
    return PreparedFunction(lambda: plan(x), listed)


@MODULE.function("gradient")
def _(engine: Engine, given: Input) -> PreparedFunction:
    steps, x = _read(given)
    every = isqrt(steps) if steps * len(x) > SAVED else None

    def gradient() -> Any:
        solve = solution(steps, every)
        return pb.grad(lambda x: solve(x)[-1])

    plan = engine.plan(("ode.gradient", steps, len(x)), gradient)
    return PreparedFunction(lambda: plan(x), listed)
