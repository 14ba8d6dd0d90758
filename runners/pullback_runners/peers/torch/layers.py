"""One layer under a quadratic loss, written for PyTorch."""

from collections.abc import Callable
from functools import partial
from typing import Any

from pullback_runners.peers.torch.adapter import PEER


def _activation(torch: Any, act: str) -> Callable[[Any], Any]:
    functional = torch.nn.functional
    activations: dict[str, Callable[[Any], Any]] = {
        "identity": lambda x: x,
        "tanh": torch.tanh,
        "relu": torch.relu,
        "sigmoid": torch.sigmoid,
        "softplus": functional.softplus,
        "gelu": partial(functional.gelu, approximate="tanh"),
    }
    return activations[act]


@PEER.form("dense_bias_act")
def _(torch: Any, /, *, act: str, **_: Any) -> Any:
    activated = _activation(torch, act)
    return lambda w, x, b: (activated(w @ x + b[:, None]) ** 2).sum()


@PEER.form("bias_act")
def _(torch: Any, /, *, act: str, **_: Any) -> Any:
    activated = _activation(torch, act)
    return lambda x, b: (activated(x + b[:, None]) ** 2).sum()


@PEER.form("conv_bias_act")
def _(torch: Any, /, *, act: str, axes: int = 2, stride: int = 1, **_: Any) -> Any:
    activated, functional = _activation(torch, act), torch.nn.functional
    conv = {1: functional.conv1d, 2: functional.conv2d}[axes]
    return lambda w, x, b: (activated(conv(x, w, b, stride=stride, padding=1)) ** 2).sum()


@PEER.form("attention_head")
def _(torch: Any, /, **_: Any) -> Any:
    attention = torch.nn.functional.scaled_dot_product_attention
    return lambda wq, wk, wv, x: (attention(x @ wq, x @ wk, x @ wv) ** 2).sum()
