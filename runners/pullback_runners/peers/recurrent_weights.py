"""Weights of recurrent layers between our order of the gates' rows, which is private, and that of other engines.

A layer's parameters are a block or arrays by name, with or without b; other engines get arrays by name.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

import pullback as pb
from pullback_runners.workloads.recurrent_parameters import arrays_like

_GATES: Final[Mapping[str, tuple[str, ...]]] = {
    "lstm": ("input", "forget", "cell", "output"),
    "gru": ("reset", "update", "candidate"),
}
"""The orders i, f, g, o and r, z, n of PyTorch and cuDNN, in which JAX's users write them too."""


def weights_of(layer: str, params: Any) -> dict[str, Any]:
    """Wi, Wh and b of a layer, with the rows of all gates in the order of other engines."""
    if layer not in _GATES:
        return {part: np.array(params[part]) for part in params}
    gates = _gates_of(layer, params)
    return {part: np.concatenate([gates[gate][part] for gate in _GATES[layer]]) for part in params}


def gradient_of(layer: str, params: Any, gradients: dict[str, Any]) -> dict[str, Any]:
    """The gradient of `weights_of` in the form of the parameters, by the name of the workload's argument."""
    found = arrays_like(params, np.empty_like)
    for part, rows in gradients.items():
        if layer not in _GATES:
            found[part][...] = rows
            continue
        for gate, own in zip(_GATES[layer], np.split(rows, len(_GATES[layer])), strict=True):
            _gates_of(layer, found)[gate][part][...] = own
    return {"params": found}


def _gates_of(layer: str, params: Any) -> Mapping[str, Mapping[str, Any]]:
    return pb.nn.lstm_gates(params) if layer == "lstm" else pb.nn.gru_gates(params)
