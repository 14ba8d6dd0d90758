"""det: the determinant by expansion into minors, and its gradient."""

import numpy as np

import pullback as pb
from pullback_runners.gradbench.module import Input, Module, PlannedFunction, array, listed, whole
from pullback_runners.workloads.det import determinant

MODULE = Module("det")


def _read(given: Input) -> PlannedFunction:
    n = whole(given, "ell")
    return (n,), lambda: determinant(n), (np.reshape(array(given, "A", n * n), (n, n)),)


MODULE.planned("primal", _read, float)
MODULE.planned("gradient", _read, lambda found: listed(np.ravel(found)), pb.grad)
