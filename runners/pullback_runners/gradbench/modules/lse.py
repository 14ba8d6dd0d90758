"""lse: the logarithm of a sum of exponentials, and its gradient."""

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, Prepared, array, listed
from pullback_runners.workloads.lse import lse

MODULE = Module("lse")


@MODULE.function("primal")
def _(engine: Engine, given: Input) -> Prepared:
    x = array(given, "x", None)
    plan = engine.plan(("lse.primal", len(x)), lambda: lse(n=len(x)))
    return Prepared(lambda: plan(x), float)


@MODULE.function("gradient")
def _(engine: Engine, given: Input) -> Prepared:
    x = array(given, "x", None)
    plan = engine.plan(("lse.gradient", len(x)), lambda: pb.grad(lse(n=len(x))))
    return Prepared(lambda: plan(x), listed)
