"""One layer under a quadratic loss, written for HIPS autograd."""

from collections.abc import Callable
from typing import Any

from pullback_runners.peers.autograd.adapter import PEER
from pullback_runners.workloads.activations import GELU_CUBIC, GELU_SCALE


def _activation(autograd: Any, act: str) -> Callable[[Any], Any]:
    anp = autograd.numpy
    return {  # type: ignore[no-any-return] # autograd is untyped
        "identity": lambda x: x,
        "tanh": anp.tanh,
        "relu": lambda x: anp.maximum(x, 0),
        "sigmoid": lambda x: 0.5 * (anp.tanh(0.5 * x) + 1),
        "softplus": lambda x: anp.maximum(x, 0) + anp.log1p(anp.exp(-anp.abs(x))),
        "gelu": lambda x: 0.5 * x * (1 + anp.tanh(GELU_SCALE * (x + GELU_CUBIC * x**3))),
    }[act]


@PEER.form("dense_bias_act")
def _(autograd: Any, /, *, act: str, **_: Any) -> Any:
    anp = autograd.numpy
    activated = _activation(autograd, act)
    return lambda w, x, b: anp.sum(activated(anp.dot(w, x) + b[:, None]) ** 2)


@PEER.form("bias_act")
def _(autograd: Any, /, *, act: str, **_: Any) -> Any:
    activated = _activation(autograd, act)
    return lambda x, b: autograd.numpy.sum(activated(x + b[:, None]) ** 2)


@PEER.form("attention_head")
def _(autograd: Any, /, *, size: int, **_: Any) -> Any:
    anp = autograd.numpy
    scale = float(size) ** -0.5

    def loss(wq: Any, wk: Any, wv: Any, x: Any) -> Any:
        q, k, v = anp.matmul(x, wq), anp.matmul(x, wk), anp.matmul(x, wv)
        s = scale * anp.matmul(q, anp.swapaxes(k, 1, 2))
        p = anp.exp(s - anp.max(s, axis=2, keepdims=True))
        p = p / anp.sum(p, axis=2, keepdims=True)
        return anp.sum(anp.matmul(p, v) ** 2)

    return loss
