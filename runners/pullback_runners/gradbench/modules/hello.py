"""hello: the square of a number, and its derivative."""

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, Prepared

MODULE = Module("hello")


def _square(x: float) -> float:
    return x * x


@MODULE.function("square")
def _(engine: Engine, given: Input) -> Prepared:
    plan, x = engine.plan("hello.square", lambda: _square), float(given)
    return Prepared(lambda: plan(x), float)


@MODULE.function("double")
def _(engine: Engine, given: Input) -> Prepared:
    plan, x = engine.plan("hello.double", lambda: pb.grad(_square)), float(given)
    return Prepared(lambda: plan(x), float)
