"""det: the determinant by expansion into minors, and its gradient."""

from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, Prepared, array, listed, whole
from pullback_runners.workloads.det import determinant

MODULE = Module("det")


def _read(given: Input) -> tuple[int, Any]:
    n = whole(given, "ell")
    return n, np.reshape(array(given, "A", n * n), (n, n))


@MODULE.function("primal")
def _(engine: Engine, given: Input) -> Prepared:
    n, matrix = _read(given)
    plan = engine.plan(("det.primal", n), lambda: determinant(n))
    return Prepared(lambda: plan(matrix), float)


@MODULE.function("gradient")
def _(engine: Engine, given: Input) -> Prepared:
    n, matrix = _read(given)
    plan = engine.plan(("det.gradient", n), lambda: pb.grad(determinant(n)))
    return Prepared(lambda: plan(matrix), lambda found: listed(np.ravel(found)))
