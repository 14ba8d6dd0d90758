"""lse: the logarithm of a sum of exponentials, and its gradient."""

import pullback as pb
from pullback_runners.gradbench.module import Input, Module, PlannedFunction, array, listed
from pullback_runners.workloads.lse import lse

MODULE = Module("lse")


def _read(given: Input) -> PlannedFunction:
    x = array(given, "x", None)
    return (len(x),), lambda: lse(n=len(x)), (x,)


MODULE.planned("primal", _read, float)
MODULE.planned("gradient", _read, listed, pb.grad)
