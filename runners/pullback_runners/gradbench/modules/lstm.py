"""lstm: loss of ADBench's language model, and its gradient by all parameters as one list."""

from functools import partial
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.gradbench.module import Input, Module, PlannedFunction, array, listed
from pullback_runners.workloads.lstm_lm import lstm_lm

MODULE = Module("lstm")


def _read(given: Input) -> PlannedFunction:
    x = array(given, "sequence", None, None)
    steps, units = x.shape
    main = array(given, "main_params", None, 4 * units)
    layers = len(main) // 2
    arguments = (main, array(given, "extra_params", 3, units), array(given, "state", 2 * layers, units), x)
    return (layers, steps, units), lambda: lstm_lm(layers=layers, steps=steps, units=units), arguments


def _as_one_list(found: Any) -> Any:
    return listed(np.concatenate([np.ravel(gradient) for gradient in found]))


MODULE.planned("objective", _read, float)
MODULE.planned("jacobian", _read, _as_one_list, partial(pb.grad, wrt=("main", "extra")))
