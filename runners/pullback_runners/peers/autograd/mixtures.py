"""Mixtures of Gaussians, written for HIPS autograd."""

from typing import Any

import numpy as np

from pullback_runners.peers.autograd.adapter import PEER
from pullback_runners.workloads.gmm_likelihood import positions_below_diagonal


@PEER.form("gmm_likelihood")
def _(autograd: Any, /, *, d: int, k: int, n: int) -> Any:
    anp, logsumexp = autograd.numpy, autograd.scipy.special.logsumexp
    rows, columns = positions_below_diagonal(d)
    places = np.full((d, d), len(rows))
    places[rows, columns] = np.arange(len(rows))

    def likelihood(weights: Any, means: Any, factors: Any, x: Any) -> Any:
        logs = factors[:, :d]
        below = anp.concatenate([factors[:, d:], np.zeros((k, 1), x.dtype)], axis=1)[:, places]
        centred = x[:, None, :] - means
        scaled = anp.exp(logs) * centred + anp.einsum("kij,nkj->nki", below, centred)
        exponents = weights + anp.sum(logs, axis=1) - 0.5 * anp.sum(scaled**2, axis=2)
        return anp.sum(logsumexp(exponents, axis=1)) - n * logsumexp(weights)

    return likelihood
