"""Recurrent layers over a sequence, written for PyTorch."""

from collections.abc import Callable
from typing import Any

from pullback_runners.peers.peer import Form
from pullback_runners.peers.recurrent_weights import (
    gru_gradient,
    gru_weights,
    lstm_gradient,
    lstm_weights,
    rnn_gradient,
    rnn_weights,
)
from pullback_runners.peers.torch.adapter import PEER, tensor_of
from pullback_runners.workloads import Inputs


@PEER.form("rnn")
def _(torch: Any, inputs: Inputs, /, *, hidden: int, **_: Any) -> Form:
    params = inputs["params"]
    layer = torch.nn.RNN(hidden, hidden, bias="b" in params)
    return _layer(torch, layer, rnn_weights(params), inputs["x"], lambda found: rnn_gradient(params, found))


@PEER.form("lstm")
def _(torch: Any, inputs: Inputs, /, *, hidden: int, **_: Any) -> Form:
    params = inputs["params"]
    layer = torch.nn.LSTM(hidden, hidden, bias="b" in params)
    return _layer(torch, layer, lstm_weights(params), inputs["x"], lambda found: lstm_gradient(params, found))


@PEER.form("gru")
def _(torch: Any, inputs: Inputs, /, *, hidden: int, **_: Any) -> Form:
    params = inputs["params"]
    layer = torch.nn.GRU(hidden, hidden, bias="b" in params)
    return _layer(torch, layer, gru_weights(params), inputs["x"], lambda found: gru_gradient(params, found))


def _layer(
    torch: Any,
    layer: Any,
    weights: dict[str, Any],
    x: Any,
    gradients: Callable[[dict[str, Any]], dict[str, Any]],
) -> Form:
    """A layer of `torch.nn` with our weights; it has two biases that are added up, so the second is zero and stays so."""
    layer.to(tensor_of(torch, x).dtype)
    own = dict(zip(weights, layer.parameters(), strict=False))
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensor_of(torch, weights[name]))
        if "b" in weights:
            layer.bias_hh_l0.zero_()

    def loss(*arguments: Any) -> Any:
        return (layer(arguments[-1])[0] ** 2).sum()

    return Form(loss, {**own, "x": x}, tuple(weights), gradients)
