"""Activations by name or by function, and what their derivatives read."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback.ir.graph import Var
from pullback.ir.types import ArrayType
from pullback.kinds import Scalar
from pullback.numpy_api.ufuncs import UFUNCS
from pullback.recorder import record
from pullback.rules import activations, trigonometric

ACTIVATIONS: dict[str, Scalar] = {
    "identity": activations.identity,
    "relu": activations.relu,
    "sigmoid": activations.sigmoid,
    "softplus": activations.softplus,
    "tanh": trigonometric.tanh,
}


def activation(act: str | Callable[..., Any]) -> Scalar | Callable[..., Any]:
    """The rule behind a name or a NumPy ufunc; any other function comes back as it is."""
    if isinstance(act, str):
        if act not in ACTIVATIONS:
            raise ValueError(
                f"there is no activation {act!r}; there are {', '.join(sorted(ACTIVATIONS))}, or pass a function"
            )
        return ACTIVATIONS[act]
    rule = UFUNCS.get(act) if isinstance(act, np.ufunc) else None
    return rule if isinstance(rule, Scalar) and len(rule.maps) == 1 else act


@cache
def reads_output_only(rule: Scalar) -> bool:
    """Whether the derivative of a one-operand rule can be had from its output, found by tracing it.

    Such a rule may overwrite its operand.
    """
    probe = ArrayType((2,), np.dtype(np.float64))
    (map_,) = rule.maps
    if map_ is None:
        return False  # there is no cotangent to write from anything
    graph, _ = record(lambda v, x, y: ([map_(v, x, y)], None), [probe, probe, probe])
    x = graph.inputs[1]
    return not any(atom is x for node in graph.nodes for atom in node.inputs if isinstance(atom, Var))
