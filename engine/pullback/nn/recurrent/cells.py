"""One step of a recurrent layer, in primitives: the reference of the whole-sequence rules.

The features are the last axis: x is (inputs,) or (batch, inputs), a state (hidden,) or (batch, hidden). A state of None
stands for zeros and costs no product. sigma is the logistic function, * is elementwise.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.nn.activation_choice import activation
from pullback.nn.recurrent.weights import GRU_GATES, LSTM_GATES, Parameters, Weights, weights_of
from pullback.rules.activations import sigmoid

RESETS = ("after", "before")

Step = Callable[..., tuple[Any, ...]]
"""A function from weights, x and the states of all kinds to the next states."""


def rnn_cell(params: Parameters, x: Any, h: Any = None, act: str | Callable[..., Any] = "tanh") -> Any:
    """The next state: act(Wi x + Wh h + b).

    `h = pb.nn.rnn_cell(block, x, h)`
    """
    weights = weights_of("rnn_cell", 1, params)
    check_step("rnn_cell", weights, x, h)
    return rnn_step(weights, x, h, activation(act))


def lstm_cell(params: Parameters, x: Any, state: tuple[Any, Any] = (None, None)) -> tuple[Any, Any]:
    """The next state (h, c) of a long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers).

    i, f, o = sigma(Wi x + Wh h + b) and g = tanh(Wi x + Wh h + b), each with its own rows;
    c' = f * c + i * g and h' = o * tanh(c').

    `h, c = pb.nn.lstm_cell(block, x, (h, c))`
    """
    weights = weights_of("lstm_cell", len(LSTM_GATES), params)
    for part in state:
        check_step("lstm_cell", weights, x, part)
    return lstm_step(weights, x, *state)


def gru_cell(params: Parameters, x: Any, h: Any = None, reset: str = "after") -> Any:
    """The next state of a gated recurrent unit, r * h' deciding what of the old state the candidate n sees.

    r, z = sigma(Wi x + Wh h + b) and h' = (1 - z) * n + z * h, where n is
    tanh(Wi x + b + r * (Wh h)) with reset="after" (Cho et al. 2014, version 1; Flux's GRU, cuDNN), or
    tanh(Wi x + b + Wh (r * h)) with reset="before" (version 3; Flux's GRUv3).

    `h = pb.nn.gru_cell(block, x, h)`
    """
    weights = weights_of("gru_cell", len(GRU_GATES), params)
    check_step("gru_cell", weights, x, h)
    return gru_step(weights, x, h, checked_reset(reset))


def checked_reset(reset: str) -> str:
    """The form of a gated unit, if there is such a form."""
    if reset not in RESETS:
        raise ValueError(f"a gated recurrent unit resets {' or '.join(map(repr, RESETS))} the product, not {reset!r}")
    return reset


def check_step(layer: str, weights: Weights, x: Any, h: Any) -> None:
    """Refuse an input or a state whose features are not those of the weights."""
    inputs = np.shape(weights.wi)[1]
    if np.ndim(x) not in {1, 2} or np.shape(x)[-1] != inputs:
        raise ValueError(f"{layer}: x is ({inputs},) or (batch, {inputs}), got shape {np.shape(x)}")
    check_state(layer, weights, h)


def check_state(layer: str, weights: Weights, h: Any) -> None:
    """Refuse a state whose features are not those of the weights."""
    if h is not None and (np.ndim(h) not in {1, 2} or np.shape(h)[-1] != weights.hidden):
        raise ValueError(
            f"{layer}: a state is ({weights.hidden},) or (batch, {weights.hidden}), got shape {np.shape(h)}"
        )


def rnn_step(weights: Weights, x: Any, h: Any, act: Callable[..., Any]) -> Any:
    """`rnn_cell` for weights that fit."""
    z = _input(weights, x)
    return act(z if h is None else z + h @ np.transpose(weights.wh))


def lstm_step(weights: Weights, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
    """`lstm_cell` for weights that fit."""
    z = _input(weights, x)
    o, i, f, g = _parts(z if h is None else z + h @ np.transpose(weights.wh), weights.hidden)
    written = sigmoid(i) * np.tanh(g)
    c = written if c is None else sigmoid(f) * c + written
    return sigmoid(o) * np.tanh(c), c


def gru_step(weights: Weights, x: Any, h: Any, reset: str) -> Any:
    """`gru_cell` for weights that fit."""
    z_r, z_z, z_n = _parts(_input(weights, x), weights.hidden)
    if h is None:
        return (1 - sigmoid(z_z)) * np.tanh(z_n)
    if reset == "after":
        h_r, h_z, h_n = _parts(h @ np.transpose(weights.wh), weights.hidden)
        n = np.tanh(z_n + sigmoid(z_r + h_r) * h_n)
    else:
        gates = 2 * weights.hidden
        h_r, h_z = _parts(h @ np.transpose(weights.wh[:gates]), weights.hidden)
        n = np.tanh(z_n + (sigmoid(z_r + h_r) * h) @ np.transpose(weights.wh[gates:]))
    z = sigmoid(z_z + h_z)
    return (1 - z) * n + z * h


def run_steps(step: Step, weights: Weights, x: Any, states: Sequence[Any]) -> tuple[Any, ...]:
    """A layer as the plain loop over its step: the states of all steps, each kind stacked."""
    results = []
    for position in range(np.shape(x)[0]):
        states = step(weights, x[position], *states)
        results.append(states)
    return tuple(np.stack(part) for part in zip(*results, strict=True))


def _input(weights: Weights, x: Any) -> Any:
    z = x @ np.transpose(weights.wi)
    return z if weights.b is None else z + weights.b


def _parts(z: Any, hidden: int) -> list[Any]:
    """The rows of each gate, which are the last axis here."""
    return [z[..., start : start + hidden] for start in range(0, np.shape(z)[-1], hidden)]
