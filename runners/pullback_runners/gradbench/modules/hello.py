"""hello: the square of a number, and its derivative."""

import pullback as pb
from pullback_runners.gradbench.module import Input, Module, PlannedFunction

MODULE = Module("hello")


def _square(x: float) -> float:
    return x * x


def _read(given: Input) -> PlannedFunction:
    return (), lambda: _square, (float(given),)


MODULE.planned("square", _read, float)
MODULE.planned("double", _read, float, pb.grad)
