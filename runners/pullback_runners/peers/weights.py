"""Weights of recurrent layers between a block, whose order of rows is private, and the order i, f, g, o of other engines."""

from typing import Any

import numpy as np

import pullback as pb

_GATES = ("input", "forget", "cell", "output")
_PARTS = ("Wi", "Wh", "b")


def lstm_weights(block: pb.Block) -> dict[str, Any]:
    """Wi, Wh and b with the rows of all gates in the order i, f, g, o."""
    gates = pb.nn.lstm_gates(block)
    return {part: np.concatenate([gates[gate][part] for gate in _GATES]) for part in _PARTS}


def lstm_gradient(like: pb.Block, gradients: dict[str, Any]) -> dict[str, Any]:
    """The gradient of `lstm_weights` as a block in the layout of `like`, by the name of the workload's argument."""
    block = like.map(np.empty_like)
    for part, gates in gradients.items():
        for gate, rows in zip(_GATES, np.split(gates, 4), strict=True):
            pb.nn.lstm_gates(block)[gate][part][...] = rows
    return {"params": block}


def rnn_weights(block: pb.Block) -> dict[str, Any]:
    """Wi, Wh and b of a plain recurrent layer."""
    return {part: np.array(block[part]) for part in _PARTS}


def rnn_gradient(like: pb.Block, gradients: dict[str, Any]) -> dict[str, Any]:
    """The gradient of `rnn_weights` as a block, by the name of the workload's argument."""
    block = like.map(np.empty_like)
    for part, rows in gradients.items():
        block[part] = rows
    return {"params": block}
