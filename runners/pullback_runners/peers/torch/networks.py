"""Networks of several layers, written for PyTorch."""

from typing import Any

import numpy as np

from pullback_runners.peers.peer import Form
from pullback_runners.peers.torch.adapter import PEER
from pullback_runners.workloads import Inputs
from pullback_runners.workloads.generator_only import WANTED


@PEER.form("mlp_step", with_inputs=True)
def _(torch: Any, inputs: Inputs, /, **_: Any) -> Form:
    functional = torch.nn.functional

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = functional.linear(x, w1, b1).relu()
        h = functional.linear(h, w2, b2).relu()
        return functional.cross_entropy(functional.linear(h, w3, b3), labels)

    # One row a sample, PyTorch's own custom.
    return Form(loss, {**inputs, "x": np.ascontiguousarray(inputs["x"].T)}, ("w1", "b1", "w2", "b2", "w3", "b3"))


@PEER.form("generator_only", with_inputs=True)
def _(torch: Any, inputs: Inputs, /, **_: Any) -> Form:
    functional = torch.nn.functional

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, v1: Any, c1: Any, v2: Any, c2: Any, z: Any) -> Any:
        x = functional.linear(functional.linear(z, w1, b1).tanh(), w2, b2)
        score = functional.linear(functional.linear(x, v1, c1).relu(), v2, c2)
        return functional.softplus(-score).mean()

    return Form(loss, {**inputs, "z": np.ascontiguousarray(inputs["z"].T)}, WANTED)


@PEER.form("lenet_step")
def _(torch: Any, /, *, batch: int) -> Any:
    functional = torch.nn.functional

    def loss(
        k1: Any, c1: Any, k2: Any, c2: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any
    ) -> Any:
        h = functional.max_pool2d(functional.conv2d(x, k1, c1).relu(), 2)
        h = functional.max_pool2d(functional.conv2d(h, k2, c2).relu(), 2).reshape(batch, -1)
        h = functional.linear(h, w1, b1).relu()
        h = functional.linear(h, w2, b2).relu()
        return functional.cross_entropy(functional.linear(h, w3, b3), labels)

    return loss
