"""Weights of recurrent layers between our order of the gates' rows, which is private, and that of other engines.

A layer's parameters are a block or arrays by name, with or without b; other engines get arrays by name.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.recurrent_parameters import arrays_like

LSTM_GATES = ("input", "forget", "cell", "output")
"""The order i, f, g, o of PyTorch and cuDNN, in which JAX's users write them too."""

GRU_GATES = ("reset", "update", "candidate")
"""The order r, z, n of PyTorch and cuDNN."""

Gates = Callable[[Any], Mapping[str, Mapping[str, Any]]]


def rnn_weights(params: Any) -> dict[str, Any]:
    """Wi, Wh and b of a plain recurrent layer."""
    return {part: np.array(params[part]) for part in params}


def rnn_gradient(params: Any, gradients: dict[str, Any]) -> dict[str, Any]:
    """The gradient of `rnn_weights` in the form of the parameters, by the name of the workload's argument."""
    found = arrays_like(params, np.empty_like)
    for part, rows in gradients.items():
        found[part][...] = rows
    return {"params": found}


def lstm_weights(params: Any) -> dict[str, Any]:
    """Wi, Wh and b with the rows of all gates in the order of `LSTM_GATES`."""
    return _ordered(params, pb.nn.lstm_gates, LSTM_GATES)


def lstm_gradient(params: Any, gradients: dict[str, Any]) -> dict[str, Any]:
    """The gradient of `lstm_weights` in the form of the parameters, by the name of the workload's argument."""
    return _in_our_order(params, gradients, pb.nn.lstm_gates, LSTM_GATES)


def gru_weights(params: Any) -> dict[str, Any]:
    """Wi, Wh and b with the rows of all gates in the order of `GRU_GATES`."""
    return _ordered(params, pb.nn.gru_gates, GRU_GATES)


def gru_gradient(params: Any, gradients: dict[str, Any]) -> dict[str, Any]:
    """The gradient of `gru_weights` in the form of the parameters, by the name of the workload's argument."""
    return _in_our_order(params, gradients, pb.nn.gru_gates, GRU_GATES)


def _ordered(params: Any, gates_of: Gates, order: tuple[str, ...]) -> dict[str, Any]:
    gates = gates_of(params)
    return {part: np.concatenate([gates[gate][part] for gate in order]) for part in params}


def _in_our_order(params: Any, gradients: dict[str, Any], gates_of: Gates, order: tuple[str, ...]) -> dict[str, Any]:
    found = arrays_like(params, np.empty_like)
    for part, rows in gradients.items():
        for gate, own in zip(order, np.split(rows, len(order)), strict=True):
            gates_of(found)[gate][part][...] = own
    return {"params": found}
