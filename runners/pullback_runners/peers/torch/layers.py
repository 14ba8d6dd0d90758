"""One layer under a quadratic loss, written for PyTorch."""

from typing import Any

from pullback_runners.peers.torch.adapter import PEER
from pullback_runners.workloads import Inputs


@PEER.form("dense_bias_act")
def _(torch: Any, inputs: Inputs, /, *, act: str, **_: Any) -> Any:
    del inputs
    activated = getattr(torch, act)
    return lambda w, x, b: (activated(w @ x + b[:, None]) ** 2).sum()


@PEER.form("conv_bias_act")
def _(torch: Any, inputs: Inputs, /, *, act: str, **_: Any) -> Any:
    del inputs
    activated, conv2d = getattr(torch, act), torch.nn.functional.conv2d
    return lambda w, x, b: (activated(conv2d(x, w, b, padding=1)) ** 2).sum()
