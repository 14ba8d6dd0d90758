"""llsq: the distance of a polynomial from the sign function, and its gradient by the coefficients."""

import pullback as pb
from pullback_runners.gradbench.module import Input, Module, PlannedFunction, array, listed, whole
from pullback_runners.workloads.llsq import llsq

MODULE = Module("llsq")


def _read(given: Input) -> PlannedFunction:
    x, n = array(given, "x", None), whole(given, "n", least=2)
    return (n, len(x)), lambda: llsq(n=n, m=len(x)), (x,)


MODULE.planned("primal", _read, float)
MODULE.planned("gradient", _read, listed, pb.grad)
