"""Seed 3: recurrent layers, their parameters apart and in one block; value and gradient of sum(states ** 2)."""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from benchmarks.seeds.row import BASELINE, BY_HAND, Row
from benchmarks.turns import Call

import pullback as pb

_LAYERS: dict[str, tuple[Callable[..., Any], Callable[..., pb.Block], str]] = {
    "rnn": (pb.nn.rnn, pb.nn.rnn_block, "RNN"),
    "lstm": (pb.nn.lstm, pb.nn.lstm_block, "LSTM"),
    "gru": (pb.nn.gru, pb.nn.gru_block, "GRU"),
}


def layer(name: str, steps: int, batch: int, width: int) -> Mapping[str, Call]:
    """The loop over cells is the baseline; PyTorch's layer, where it is installed, has weights of its own."""
    function, make, torch_name = _LAYERS[name]
    rng = np.random.default_rng(0)
    block = make(width, width, dtype=np.float32, init=pb.nn.glorot_uniform(rng))
    apart = {part: view.copy() for part, view in block.items()}
    x = rng.normal(size=(steps, batch, width)).astype(np.float32)

    def loss(params: Any, x: Any) -> Any:
        states = function(params, x)
        return np.sum((states[0] if isinstance(states, tuple) else states) ** 2)

    gradient = pb.value_and_grad(loss)

    def planned(tier: str, params: Any) -> Call:
        plan = pb.compile(gradient, tier=tier)
        return lambda: plan(params, x)

    ways: dict[str, Call] = {
        BASELINE: lambda: gradient(block, x),
        "fused, weights apart": planned("fused", apart),
        "fused": planned("fused", block),
        "stateful": planned("stateful", block),
    }
    if name == "rnn":
        ways[BY_HAND] = lambda: _rnn_by_hand(apart, x)
    if importlib.util.find_spec("torch"):
        ways[f"torch.nn.{torch_name}"] = _torch(torch_name, x, width)
    return ways


def _rnn_by_hand(params: Mapping[str, Any], x: Any) -> Any:
    """Back-propagation through time as one writes it: products before the loop, one weight gradient after it."""
    wi, wh, b = params["Wi"], params["Wh"], params["b"]
    steps, batch, _ = x.shape
    inner = x @ wi.T + b
    states = np.zeros((steps + 1, batch, len(b)), x.dtype)
    for step in range(steps):
        states[step + 1] = np.tanh(inner[step] + states[step] @ wh.T)
    cotangents = 2 * states[1:]
    back = np.zeros_like(states[0])
    for step in reversed(range(steps)):
        cotangents[step] = (cotangents[step] + back) * (1 - states[step + 1] ** 2)
        back = cotangents[step] @ wh
    flat = cotangents.reshape(-1, len(b))
    wi_bar, wh_bar = flat.T @ x.reshape(len(flat), -1), flat.T @ states[:-1].reshape(len(flat), -1)
    return np.sum(states[1:] ** 2), wi_bar, wh_bar, np.sum(flat, axis=0)


def _torch(name: str, x: Any, width: int) -> Call:
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    layer = getattr(torch.nn, name)(width, width)
    inputs = torch.from_numpy(x)

    def run() -> Any:
        layer.zero_grad()
        value = (layer(inputs)[0] ** 2).sum()
        value.backward()
        return value

    return run


#: Steps, batch, inputs and hidden units alike.
_SIZES = (50, 32, 64)

ROWS = tuple(
    Row(f"s3-8 {name} {'x'.join(map(str, _SIZES))}", "block <= apart", partial(layer, name, *_SIZES))
    for name in _LAYERS
)
