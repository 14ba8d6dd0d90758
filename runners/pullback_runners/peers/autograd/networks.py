"""Networks of several layers, written for HIPS autograd."""

from typing import Any

import numpy as np

from pullback_runners.peers.autograd.adapter import PEER


@PEER.form("mlp_step")
def _(autograd: Any, /, **_: Any) -> Any:
    anp = autograd.numpy

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = anp.maximum(anp.dot(w1, x) + b1[:, None], 0)
        h = anp.maximum(anp.dot(w2, h) + b2[:, None], 0)
        z = anp.dot(w3, h) + b3[:, None]
        return anp.mean(autograd.scipy.special.logsumexp(z, axis=0) - z[labels, np.arange(len(labels))])

    return loss


@PEER.form("generator_only")
def _(autograd: Any, /, **_: Any) -> Any:
    anp = autograd.numpy

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, v1: Any, c1: Any, v2: Any, c2: Any, z: Any) -> Any:
        x = anp.dot(w2, anp.tanh(anp.dot(w1, z) + b1[:, None])) + b2[:, None]
        score = anp.dot(v2, anp.maximum(anp.dot(v1, x) + c1[:, None], 0)) + c2[:, None]
        return anp.mean(anp.maximum(-score, 0) + anp.log1p(anp.exp(-anp.abs(score))))

    return loss
