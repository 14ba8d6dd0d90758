"""gmm: the log-posterior of a mixture of Gaussians, and its gradient by all parameters."""

from functools import partial
from typing import Any

import pullback as pb
from pullback_runners.gradbench.module import Input, Module, PlannedFunction, array, listed, whole
from pullback_runners.workloads.gmm import log_posterior

MODULE = Module("gmm")
_PARAMETERS = ("alpha", "mu", "q", "l")


def _read(given: Input) -> PlannedFunction:
    d, k, n = (whole(given, name) for name in ("d", "k", "n"))
    sizes, gamma = {"d": d, "k": k, "n": n, "m": whole(given, "m", least=0)}, float(given["gamma"])
    below = d * (d - 1) // 2
    shapes = {"alpha": (k,), "mu": (k, d), "q": (k, d), "l": (k, below), "x": (n, d)}
    arguments = tuple(array(given, name, *shape) for name, shape in shapes.items())
    return (*sizes.values(), gamma), lambda: log_posterior(**sizes, gamma=gamma), arguments


def _by_name(found: Any) -> dict[str, Any]:
    return {name: listed(gradient) for name, gradient in zip(_PARAMETERS, found, strict=True)}


MODULE.planned("objective", _read, float)
MODULE.planned("jacobian", _read, _by_name, partial(pb.grad, wrt=_PARAMETERS))
