"""lstm: loss of ADBench's language model, and its gradient by all parameters as one list."""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.module import Input, Module, Prepared, array, listed
from pullback_runners.workloads.lstm_lm import lstm_lm

MODULE = Module("lstm")


def _read(given: Input) -> tuple[tuple[Any, ...], Callable[..., Any], tuple[Any, ...]]:
    x = array(given, "sequence", None, None)
    steps, units = x.shape
    main = array(given, "main_params", None, 4 * units)
    layers = len(main) // 2
    arguments = (main, array(given, "extra_params", 3, units), array(given, "state", 2 * layers, units), x)
    return (layers, steps, units), lstm_lm(layers=layers, steps=steps, units=units), arguments


@MODULE.function("objective")
def _(engine: Engine, given: Input) -> Prepared:
    sizes, loss, arguments = _read(given)
    plan = engine.plan(("lstm.objective", *sizes), lambda: loss)
    return Prepared(lambda: plan(*arguments), float)


@MODULE.function("jacobian")
def _(engine: Engine, given: Input) -> Prepared:
    sizes, loss, arguments = _read(given)
    plan = engine.plan(("lstm.jacobian", *sizes), lambda: pb.grad(loss, wrt=("main", "extra")))
    return Prepared(
        lambda: plan(*arguments), lambda found: listed(np.concatenate([np.ravel(gradient) for gradient in found]))
    )
