"""Choice of the rules of a layer: one if its activation can be differentiated from its output, else two.

| tier    | activation                             | runs as                                     | arrays kept        |
|---------|----------------------------------------|---------------------------------------------|--------------------|
| unfused | any                                    | product, sum, activation                    | three              |
| others  | derivative reads the output only       | one rule, which overwrites its product      | the output         |
| others  | derivative reads the input             | product and bias in one rule, then the rule | both               |
| others  | a function of the caller's             | product and bias in one rule, then it       | what it needs      |
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.nn.activation_choice import ActivationRule, activation, reads_output_only
from pullback.rules.activations import identity
from pullback.rules.bias_act import ActivatedLayer
from pullback.tiers import current_tier

Act = str | Callable[..., Any]


def run_layer(
    rule: ActivatedLayer,
    act: Act,
    operands: Sequence[Any],
    params: dict[str, Any],
    reference: Callable[..., Any],
) -> Any:
    """Run the rule of a layer, or its reference: `reference(*operands)` gives the sum of product and bias."""
    function = activation(act)
    if current_tier() == "unfused" or not all(_is_float_array(operand) for operand in operands):
        return function(reference(*operands))
    if isinstance(function, ActivationRule) and reads_output_only(function):
        shaped = {"constants": function.constants} if function.constants else {}
        return rule(*operands, act=function.rule, **shaped, **params)
    return function(rule(*operands, act=identity, **params))


def as_arrays(*operands: Any) -> list[Any]:
    """Lists as arrays; a Python number stays one, so that it takes on the precision of what it meets."""
    return [np.asarray(operand) if isinstance(operand, list | tuple) else operand for operand in operands]


def check_bias_argument(layer: str, b: Any) -> None:
    """Refuse a truth value for a bias: elsewhere it selects whether there is a bias, here it would be added."""
    if isinstance(b, bool | np.bool_):
        raise TypeError(f"{layer}: b is an array or None; True and False say nothing about its values")


def _is_float_array(operand: Any) -> bool:
    """True for an array of floats: the rule's one buffer holds no others. Other layers run as their pattern."""
    return np.ndim(operand) > 0 and getattr(operand, "dtype", np.dtype(int)).kind == "f"
