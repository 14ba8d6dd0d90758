"""Networks of several layers, written for PyTorch."""

from typing import Any

import numpy as np

from pullback_runners.peers.peer import Form
from pullback_runners.peers.torch.adapter import PEER
from pullback_runners.workloads import Inputs


@PEER.form("mlp_step")
def _(torch: Any, inputs: Inputs, /, **_: Any) -> Form:
    functional = torch.nn.functional

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = functional.linear(x, w1, b1).relu()
        h = functional.linear(h, w2, b2).relu()
        return functional.cross_entropy(functional.linear(h, w3, b3), labels)

    # One row a sample, PyTorch's own custom.
    return Form(loss, {**inputs, "x": np.ascontiguousarray(inputs["x"].T)}, ("w1", "b1", "w2", "b2", "w3", "b3"))
