"""Networks of several layers, written for HIPS autograd."""

from typing import Any

import numpy as np

from pullback_runners.peers.autograd.adapter import PEER
from pullback_runners.workloads import Inputs


@PEER.form("mlp_step")
def _(autograd: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    anp = autograd.numpy

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = anp.maximum(anp.dot(w1, x) + b1[:, None], 0)
        h = anp.maximum(anp.dot(w2, h) + b2[:, None], 0)
        z = anp.dot(w3, h) + b3[:, None]
        return anp.mean(autograd.scipy.special.logsumexp(z, axis=0) - z[labels, np.arange(len(labels))])

    return loss
