"""Statistical and financial models, written for PyTorch."""

from typing import Any

from pullback_runners.peers.torch.adapter import PEER
from pullback_runners.workloads.black_scholes import ROOT_HALF
from pullback_runners.workloads.logistic_regression import RIDGE


@PEER.form("black_scholes")
def _(torch: Any, /, **_: Any) -> Any:
    def total(s: Any, v: Any, r: Any, k: Any, t: Any) -> Any:
        spread = v * torch.sqrt(t)
        d1 = (torch.log(s / k) + (r + 0.5 * v**2) * t) / spread
        below1, below2 = (0.5 * (1 + torch.erf(d * ROOT_HALF)) for d in (d1, d1 - spread))
        return (s * below1 - k * torch.exp(-r * t) * below2).sum()

    return total


@PEER.form("logistic_regression")
def _(torch: Any, /, **_: Any) -> Any:
    softplus = torch.nn.functional.softplus
    return lambda w, b, x, y: softplus(-y * (x @ w + b)).mean() + 0.5 * RIDGE * (w**2).sum()
