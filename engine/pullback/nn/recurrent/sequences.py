"""Recurrent layers over whole sequences.

x is (steps, batch, inputs), or (steps, inputs) for a single example: time first, features last, which in memory is the
(features, batch, time) of a column-major library. What is returned holds the states of all steps.

In the fused tiers a layer is one rule; in the unfused one, and for numbers and dtypes that the rule does not take, it is
the loop over its cell.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.blocks import Block
from pullback.dataclass import dataclass
from pullback.layouts import Layout
from pullback.nn.activation_choice import ActivationRule, activation
from pullback.nn.recurrent import gru as gru_rules
from pullback.nn.recurrent.cells import Step, check_state, checked_reset, gru_step, lstm_step, rnn_step, run_steps
from pullback.nn.recurrent.lstm import lstm as lstm_rule
from pullback.nn.recurrent.rnn import SLOPES
from pullback.nn.recurrent.rnn import rnn as rnn_rule
from pullback.nn.recurrent.rule import Recurrence
from pullback.nn.recurrent.weights import GRU_GATES, LSTM_GATES, Parameters, Weights, weights_of
from pullback.packing import pack
from pullback.tiers import current_tier

Stack = Parameters | Sequence[Parameters]
"""Parameters of one layer, or of several on top of each other."""


def rnn(params: Stack, x: Any, h0: Any = None, act: str | Callable[..., Any] = "tanh") -> Any:
    """The states of a plain recurrent layer: h_t = act(Wi x_t + Wh h_(t-1) + b).

    `h = pb.nn.rnn(block, x)`; the last state is h[-1]. `act` is tanh or relu, or any other activation, for which the
    layer runs step by step. For a stack of layers h0 has one entry per layer, and the states are those of the top one.
    """
    function = activation(act)
    chosen = function.rule if isinstance(function, ActivationRule) else None
    rule = rnn_rule if chosen in SLOPES else None
    layer = _Layer("rnn", 1, rule, lambda w, x, h: (rnn_step(w, x, h, function),), {"act": chosen})
    return layer.stacked(params, x, (h0,))[0]


def lstm(params: Stack, x: Any, h0: Any = None, c0: Any = None) -> tuple[Any, Any]:
    """The states (h, c) of all steps of a long short-term memory; `lstm_cell` has the formula.

    `h, c = pb.nn.lstm(block, x)`; the last states are h[-1] and c[-1]. For a stack of layers h0 and c0 have one entry
    per layer, and the states are those of the top one.
    """
    h, c = _Layer("lstm", len(LSTM_GATES), lstm_rule, lstm_step, {}).stacked(params, x, (h0, c0))
    return h, c


def gru(params: Stack, x: Any, h0: Any = None, reset: str = "after") -> Any:
    """The states of all steps of a gated recurrent unit; `gru_cell` has the formula of both forms.

    `h = pb.nn.gru(block, x)`; the last state is h[-1]. For a stack of layers h0 has one entry per layer, and the states
    are those of the top one.
    """
    rule = gru_rules.gru_reset_after if checked_reset(reset) == "after" else gru_rules.gru_reset_before
    layer = _Layer("gru", len(GRU_GATES), rule, lambda w, x, h: (gru_step(w, x, h, reset),), {})
    return layer.stacked(params, x, (h0,))[0]


@dataclass(frozen=True, slots=True)
class _Layer:
    """A kind of layer: its rule, None if there is none for these arguments, and its step."""

    name: str
    gates: int
    rule: Recurrence | None
    step: Step
    options: dict[str, Any]

    def stacked(self, params: Stack, x: Any, initial: tuple[Any, ...]) -> tuple[Any, ...]:
        """The states of one layer, or of the last of several, each on the states h of the one below."""
        if isinstance(params, Mapping) and "Wi" in params:
            return self.run(params, x, initial)
        layers = list(params.values() if isinstance(params, Mapping) else params)
        if not layers:
            raise ValueError(f"{self.name}: a stack of no layers; give the parameters of at least one")
        for states in initial:
            if states is not None and len(states) != len(layers):
                raise ValueError(f"{self.name}: {len(layers)} layers take as many initial states, got {len(states)}")
        results: tuple[Any, ...] = (x,)
        for place, layer in enumerate(layers):
            own = [None if states is None else states[place] for states in initial]
            results = self.run(layer, results[0], own)
        return results

    def run(self, params: Parameters, x: Any, initial: Sequence[Any]) -> tuple[Any, ...]:
        """The states of one layer."""
        weights = weights_of(self.name, self.gates, params)
        _check(self.name, weights, x, initial)
        states = [None if h is None else _for_every_example(h, x) for h in initial]
        given = [h for h in states if h is not None]
        if self.rule is None or current_tier() == "unfused" or not _fits_the_rule(x, *weights, *given):
            return run_steps(self.step, weights, x, states)
        single = np.ndim(x) == 2
        if single:
            x, given = np.expand_dims(x, 1), [np.expand_dims(h, 0) for h in given]
        array, layout = _one_array(params, weights)
        present = tuple(h is not None for h in states)
        results = self.rule(x, array, *given, layout=layout, given=present, **self.options)
        sequences = results[: self.rule.states] if self.rule.results > 1 else (results,)
        return tuple(h[:, 0] for h in sequences) if single else tuple(sequences)


def _check(name: str, weights: Weights, x: Any, initial: Sequence[Any]) -> None:
    inputs = np.shape(weights.wi)[1]
    shape = np.shape(x)
    if len(shape) not in {2, 3} or shape[-1] != inputs:
        raise ValueError(f"{name}: x is (steps, {inputs}) or (steps, batch, {inputs}), got shape {shape}")
    if not shape[0]:
        raise ValueError(f"{name}: x has no steps; there is no state to return")
    for h in initial:
        check_state(name, weights, h)
        if h is not None and np.ndim(h) == 2 and np.shape(h)[0] != (shape[1] if len(shape) == 3 else None):
            raise ValueError(f"{name}: initial states of shape {np.shape(h)} do not fit an input of shape {shape}")


def _for_every_example(h: Any, x: Any) -> Any:
    """An initial state for each example; one of shape (hidden,) is every example's."""
    if np.ndim(h) == np.ndim(x) - 1:
        return h
    return np.broadcast_to(h, (np.shape(x)[1], *np.shape(h)))


def _fits_the_rule(*operands: Any) -> bool:
    """The rule has one dtype for everything it makes."""
    dtypes = {getattr(operand, "dtype", None) for operand in operands if operand is not None}
    return len(dtypes) == 1 and getattr(next(iter(dtypes)), "kind", "") == "f"


def _one_array(params: Parameters, weights: Weights) -> tuple[Any, Layout]:
    """The parameters as one array: a block's own, else packed, without a copy if they are views of one."""
    if isinstance(params, Block):
        return params.array, params.layout
    named = {name: part for name, part in zip(("Wi", "Wh", "b"), weights, strict=True) if part is not None}
    return pack(*named.values()), Layout.of({name: np.shape(part) for name, part in named.items()})
