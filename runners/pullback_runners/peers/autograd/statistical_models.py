"""Statistical and financial models, written for HIPS autograd."""

from typing import Any

from pullback_runners.peers.autograd.adapter import PEER
from pullback_runners.workloads.black_scholes import ROOT_HALF
from pullback_runners.workloads.logistic_regression import RIDGE


@PEER.form("black_scholes")
def _(autograd: Any, /, **_: Any) -> Any:
    anp, erf = autograd.numpy, autograd.scipy.special.erf

    def total(s: Any, v: Any, r: Any, k: Any, t: Any) -> Any:
        spread = v * anp.sqrt(t)
        d1 = (anp.log(s / k) + (r + 0.5 * v**2) * t) / spread
        below1, below2 = (0.5 * (1 + erf(d * ROOT_HALF)) for d in (d1, d1 - spread))
        return anp.sum(s * below1 - k * anp.exp(-r * t) * below2)

    return total


@PEER.form("logistic_regression")
def _(autograd: Any, /, **_: Any) -> Any:
    anp = autograd.numpy

    def loss(w: Any, b: Any, x: Any, y: Any) -> Any:
        z = -y * (anp.dot(x, w) + b)
        softplus = anp.maximum(z, 0) + anp.log1p(anp.exp(-anp.abs(z)))
        return anp.mean(softplus) + 0.5 * RIDGE * anp.sum(w**2)

    return loss
