"""llsq: the distance of a polynomial from the sign function, and its gradient by the coefficients."""

from collections.abc import Callable
from typing import Any

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, Prepared, array, listed, whole
from pullback_runners.workloads.llsq import llsq

MODULE = Module("llsq")


def _read(given: Input) -> tuple[tuple[int, int], Callable[..., Any], Any]:
    x, n = array(given, "x", None), whole(given, "n", least=2)
    return (n, len(x)), llsq(n=n, m=len(x)), x


@MODULE.function("primal")
def _(engine: Engine, given: Input) -> Prepared:
    sizes, distance, x = _read(given)
    plan = engine.plan(("llsq.primal", *sizes), lambda: distance)
    return Prepared(lambda: plan(x), float)


@MODULE.function("gradient")
def _(engine: Engine, given: Input) -> Prepared:
    sizes, distance, x = _read(given)
    plan = engine.plan(("llsq.gradient", *sizes), lambda: pb.grad(distance))
    return Prepared(lambda: plan(x), listed)
