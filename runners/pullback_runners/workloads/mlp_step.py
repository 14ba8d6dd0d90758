"""Value and gradients of a multilayer perceptron on a batch: three dense layers under a cross-entropy.

    h1 = relu(w1 @ x + b1)   h2 = relu(w2 @ h1 + b2)   L = -mean over samples of log softmax(w3 @ h2 + b3)[label]

x (inputs, batch) one column a sample and labels (batch,) are constants: no cotangent of x is asked for.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

PARAMETERS = ("w1", "b1", "w2", "b2", "w3", "b3")


@workload(
    wrt=PARAMETERS,
    quick=grid(inputs=(20,), hidden=(32,), classes=(10,), batch=(16,), dtype=("f4",)),
    standard=grid(inputs=(784,), hidden=(512,), classes=(10,), batch=(128,), dtype=("f4",)),
    full=grid(inputs=(784,), hidden=(128, 512), classes=(10,), batch=(1, 128, 512), dtype=("f4",))
    + grid(inputs=(784,), hidden=(512,), classes=(10,), batch=(128,), dtype=("f8",)),
)
def mlp_step(inputs: int, hidden: int, classes: int, batch: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """Cross-entropy of a three-layer perceptron with respect to its six parameters."""

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = pb.nn.dense_bias_act(w1, x, b1, act="relu")
        h = pb.nn.dense_bias_act(w2, h, b2, act="relu")
        return pb.nn.logitcrossentropy(pb.nn.dense_bias_act(w3, h, b3), labels, axis=0)

    return loss


@mlp_step.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], inputs: int, hidden: int, classes: int, batch: int) -> Inputs:
    sizes = (inputs, hidden, hidden, classes)
    arguments: Inputs = {}
    for layer, (width, outputs) in enumerate(pairwise(sizes), start=1):
        arguments[f"w{layer}"] = (rng.standard_normal((outputs, width)) / np.sqrt(width)).astype(dtype)
        arguments[f"b{layer}"] = (0.1 * rng.standard_normal(outputs)).astype(dtype)
    return {
        **arguments,
        "x": rng.standard_normal((inputs, batch)).astype(dtype),
        "labels": rng.integers(0, classes, batch),
    }


@mlp_step.oracle
@mlp_step.peer("numpy")
def _(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any, **sizes: int) -> ValueAndGradients:
    h1 = w1 @ x
    h1 += b1[:, None]
    np.maximum(h1, 0, out=h1)
    h2 = w2 @ h1
    h2 += b2[:, None]
    np.maximum(h2, 0, out=h2)
    z = w3 @ h2
    z += b3[:, None]
    z -= z.max(axis=0)
    picked = (labels, np.arange(sizes["batch"]))
    at_labels = z[picked]
    np.exp(z, out=z)
    total = z.sum(axis=0)
    value = np.mean(np.log(total) - at_labels)
    z /= total
    z[picked] -= 1
    z /= sizes["batch"]
    h2_bar = w3.T @ z
    h2_bar *= h2 > 0
    h1_bar = w2.T @ h2_bar
    h1_bar *= h1 > 0
    return value, {
        "w1": h1_bar @ x.T,
        "b1": h1_bar.sum(axis=1),
        "w2": h2_bar @ h1.T,
        "b2": h2_bar.sum(axis=1),
        "w3": z @ h2.T,
        "b3": z.sum(axis=1),
    }
