"""A dense layer."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.kinds import Scalar
from pullback.nn.activation_names import activation, reads_output_only
from pullback.rules import dense as rule
from pullback.rules.activations import identity
from pullback.tiers import current_tier


def dense_bias_act(w: Any, x: Any, b: Any = None, act: str | Callable[..., Any] = "identity") -> Any:
    """act(w @ x + b), with w (out, in), x (in,) or (in, batch), b (out,) or (out, 1) or none.

    `act` is a name (identity, relu, sigmoid, softplus, tanh), a NumPy ufunc or any elementwise function. In the fused
    tier an activation whose derivative can be written from its output overwrites the product: one array, not three.
    """
    if isinstance(b, bool):
        raise TypeError("dense_bias_act: b is an array or None; True and False say nothing about its values")
    if np.ndim(w) != 2 or np.ndim(x) not in (1, 2):
        raise ValueError(
            f"dense_bias_act: w is (out, in) and x is (in,) or (in, batch), got shapes {np.shape(w)} and {np.shape(x)}"
        )
    function = activation(act)
    operands = (w, x) if b is None else (w, x, b)
    if current_tier() == "unfused" or not all(_is_float_array(operand) for operand in operands):
        return reference(function, *operands)
    if isinstance(function, Scalar) and reads_output_only(function):
        return rule.dense_bias_act(*operands, act=function)
    return function(rule.dense_bias_act(*operands, act=identity))


def _is_float_array(operand: Any) -> bool:
    """What the rule's one buffer can hold; a layer of integers or with a number for a bias runs as its pattern."""
    return np.ndim(operand) > 0 and getattr(operand, "dtype", np.dtype(int)).kind == "f"


def reference(function: Callable[..., Any], w: Any, x: Any, b: Any = None) -> Any:
    """The same layer in primitives."""
    z = w @ x
    return function(z if b is None else z + rule.column(b, np.ndim(x)))
