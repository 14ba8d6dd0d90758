"""Choice of the rule and its parameters for an argument `act`, and of what the derivative of the rule reads."""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from pullback.core.kinds import Scalar
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Var
from pullback.nn import activations
from pullback.numpy_api.ufuncs import UFUNCS
from pullback.rules import activations as rules
from pullback.rules.trigonometric import tanh
from pullback.traces.recorder import record


@dataclass(frozen=True, slots=True)
class ActivationRule:
    """A rule and the numbers that shape it: `leakyrelu` with a slope of 0.2."""

    rule: Scalar
    constants: tuple[float, ...] = ()

    def __call__(self, x: Any) -> Any:
        """Apply the rule by itself."""
        return x if self.rule is rules.identity else self.rule(x, *self.constants)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for name, function in vars(activations).items()
    if inspect.isfunction(function) and function.__module__ == activations.__name__
}
"""The activations by name."""

_SIGMA = "\N{GREEK SMALL LETTER SIGMA}"
_NAMES = {**FUNCTIONS, _SIGMA: activations.sigmoid, f"hard{_SIGMA}": activations.hardsigmoid}
_NAMES[f"log{_SIGMA}"] = activations.logsigmoid

_RULES: dict[Callable[..., Any], Scalar] = {
    function: rule for name, function in FUNCTIONS.items() if isinstance(rule := getattr(rules, name, None), Scalar)
}
_RULES[activations.tanh] = tanh
_RULES[activations.gelu] = rules.gelu_tanh


def activation(act: str | Callable[..., Any]) -> ActivationRule | Callable[[Any], Any]:
    """The rule behind a name, one of our functions, a `partial` of one with numbers, or a NumPy ufunc.

    Any other function comes back as it is, and so does rrelu, whose slopes are drawn anew.
    """
    if isinstance(act, str):
        return _named(act)
    if not callable(act):
        raise TypeError(f"act is a function or its name, not a {type(act).__name__}")
    if isinstance(act, ActivationRule):
        return act
    if isinstance(act, Scalar):
        return ActivationRule(act) if len(act.maps) == 1 else act
    if isinstance(act, np.ufunc):
        rule = UFUNCS.get(act)
        return ActivationRule(rule) if isinstance(rule, Scalar) and len(rule.maps) == 1 else act
    return _with_constants(act)


@cache
def _named(name: str) -> ActivationRule | Callable[[Any], Any]:
    if name not in _NAMES:
        raise ValueError(f"there is no activation {name!r}; there are {', '.join(sorted(_NAMES))}, or pass a function")
    return _with_constants(_NAMES[name])


def _with_constants(act: Callable[..., Any]) -> ActivationRule | Callable[[Any], Any]:
    """One of our functions with the parameters it is called with, if these are plain finite numbers."""
    keywords: dict[str, Any] = {}
    function = act
    if isinstance(act, partial) and not act.args:
        function, keywords = act.func, act.keywords
    rule = _RULES.get(function) if inspect.isfunction(function) else None
    if rule is None or not keywords.keys() <= (parameters := inspect.signature(function).parameters).keys():
        return act
    constants = tuple(keywords.get(name, parameter.default) for name, parameter in list(parameters.items())[1:])
    if not all(type(constant) in (int, float) and np.isfinite(constant) for constant in constants):
        return act
    return ActivationRule(rule, constants)


@cache
def reads_output_only(chosen: ActivationRule) -> bool:
    """True if the derivative can be had from the output, found by tracing it. Such a rule may overwrite its operand."""
    probe = ArrayType((2,), np.dtype(np.float64))
    map_ = chosen.rule.maps[0]
    if map_ is None:
        return False  # there is no cotangent to write from anything
    graph, _ = record(lambda v, x, y: ([map_(v, x, *chosen.constants, y)], None), [probe, probe, probe])
    x = graph.inputs[1]
    return not any(atom is x for node in graph.nodes for atom in node.inputs if isinstance(atom, Var))
