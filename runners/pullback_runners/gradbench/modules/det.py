"""det: the determinant by expansion into minors, and its gradient."""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.gradbench.module import Input, Module, array, listed, whole
from pullback_runners.workloads.det import determinant

MODULE = Module("det")


def _read(given: Input) -> tuple[tuple[int], Callable[[], Callable[..., Any]], tuple[Any]]:
    n = whole(given, "ell")
    return (n,), lambda: determinant(n), (np.reshape(array(given, "A", n * n), (n, n)),)


MODULE.planned("primal", _read, float)
MODULE.planned("gradient", _read, lambda found: listed(np.ravel(found)), pb.grad)
