"""gmm: the log-posterior of a mixture of Gaussians, and its gradient by all parameters."""

from typing import Any

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, Prepared, array, listed, whole
from pullback_runners.workloads.gmm import log_posterior

MODULE = Module("gmm")
_PARAMETERS = ("alpha", "mu", "q", "l")


def _read(given: Input) -> tuple[dict[str, Any], tuple[Any, ...]]:
    d, k, n = (whole(given, name) for name in ("d", "k", "n"))
    constants = {"d": d, "k": k, "n": n, "gamma": float(given["gamma"]), "m": whole(given, "m", least=0)}
    below = d * (d - 1) // 2
    shapes = {"alpha": (k,), "mu": (k, d), "q": (k, d), "l": (k, below), "x": (n, d)}
    return constants, tuple(array(given, name, *shape) for name, shape in shapes.items())


@MODULE.function("objective")
def _(engine: Engine, given: Input) -> Prepared:
    constants, arguments = _read(given)
    plan = engine.plan(("gmm.objective", *constants.values()), lambda: log_posterior(**constants))
    return Prepared(lambda: plan(*arguments), float)


@MODULE.function("jacobian")
def _(engine: Engine, given: Input) -> Prepared:
    constants, arguments = _read(given)
    plan = engine.plan(
        ("gmm.jacobian", *constants.values()), lambda: pb.grad(log_posterior(**constants), wrt=_PARAMETERS)
    )
    return Prepared(
        lambda: plan(*arguments),
        lambda found: {name: listed(gradient) for name, gradient in zip(_PARAMETERS, found, strict=True)},
    )
