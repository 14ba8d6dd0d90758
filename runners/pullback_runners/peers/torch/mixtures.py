"""Mixtures of Gaussians, written for PyTorch."""

from typing import Any

from pullback_runners.peers.torch.adapter import PEER, tensor_of
from pullback_runners.workloads.gmm_likelihood import positions_below_diagonal


@PEER.form("gmm_likelihood")
def _(torch: Any, /, *, d: int, k: int, n: int) -> Any:
    rows, columns = (tensor_of(torch, part) for part in positions_below_diagonal(d))

    def likelihood(weights: Any, means: Any, factors: Any, x: Any) -> Any:
        logs = factors[:, :d]
        below = x.new_zeros((k, d, d))
        below[:, rows, columns] = factors[:, d:]
        centred = x[:, None, :] - means
        scaled = torch.exp(logs) * centred + torch.einsum("kij,nkj->nki", below, centred)
        exponents = weights + logs.sum(1) - 0.5 * (scaled**2).sum(2)
        return torch.logsumexp(exponents, 1).sum() - n * torch.logsumexp(weights, 0)

    return likelihood
