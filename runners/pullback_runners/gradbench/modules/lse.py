"""lse: the logarithm of a sum of exponentials, and its gradient."""

from collections.abc import Callable
from typing import Any

import pullback as pb
from pullback_runners.gradbench.module import Input, Module, array, listed
from pullback_runners.workloads.lse import lse

MODULE = Module("lse")


def _read(given: Input) -> tuple[tuple[int], Callable[[], Callable[..., Any]], tuple[Any]]:
    x = array(given, "x", None)
    return (len(x),), lambda: lse(n=len(x)), (x,)


MODULE.planned("primal", _read, float)
MODULE.planned("gradient", _read, listed, pb.grad)
