"""Recurrent layers over a sequence, written for PyTorch."""

from functools import partial
from typing import Any

from pullback_runners.peers.peer import Form
from pullback_runners.peers.recurrent_weights import gradient_of, weights_of
from pullback_runners.peers.torch.adapter import PEER, tensor_of
from pullback_runners.workloads import Inputs


def _form(name: str, torch: Any, inputs: Inputs, /, *, hidden: int, **_: Any) -> Form:
    """A layer of `torch.nn` with our weights; it has two biases that are added up, so the second is zero and stays so."""
    params, x = inputs["params"], inputs["x"]
    weights = weights_of(name, params)
    layer = getattr(torch.nn, name.upper())(hidden, hidden, bias="b" in params)
    layer.to(tensor_of(torch, x).dtype)
    own = dict(zip(weights, layer.parameters(), strict=False))
    with torch.no_grad():
        for part, parameter in own.items():
            parameter.copy_(tensor_of(torch, weights[part]))
        if "b" in weights:
            layer.bias_hh_l0.zero_()

    def loss(*arguments: Any) -> Any:
        return (layer(arguments[-1])[0] ** 2).sum()

    return Form(loss, {**own, "x": x}, tuple(weights), partial(gradient_of, name, params))


for _name in ("rnn", "lstm", "gru"):
    PEER.form(_name, with_inputs=True)(partial(_form, _name))
