"""One layer under a quadratic loss, written for HIPS autograd."""

from collections.abc import Callable
from typing import Any

from pullback_runners.peers.autograd.adapter import PEER
from pullback_runners.workloads import Inputs


def _activation(anp: Any, act: str) -> Callable[[Any], Any]:
    return {"tanh": anp.tanh, "relu": lambda x: anp.maximum(x, 0)}[act]  # type: ignore[no-any-return]


@PEER.form("dense_bias_act")
def _(autograd: Any, inputs: Inputs, /, *, act: str, **_: Any) -> Any:
    del inputs
    anp = autograd.numpy
    activated = _activation(anp, act)
    return lambda w, x, b: anp.sum(activated(anp.dot(w, x) + b[:, None]) ** 2)
