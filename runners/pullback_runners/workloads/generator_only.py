"""A generator's step in a generative adversarial network: gradients pass through the discriminator, which is frozen.

    h = tanh(w1 @ z + b1)      x = w2 @ h + b2                      the generator: wanted
    k = relu(v1 @ x + c1)      s = v2 @ k + c2                      the discriminator: constant
    L = mean over samples of softplus(-s)

One column a sample. Zygote.jl's issue 323: the cotangent of x needs the discriminator's weights and activations, but no
gradient of them. An engine that computes those too does two products more for nothing.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

WANTED = ("w1", "b1", "w2", "b2")


@workload(
    wrt=WANTED,
    quick=grid(latent=(8,), hidden=(32,), data=(64,), batch=(16,), dtype=("f4",)),
    standard=grid(latent=(64,), hidden=(256,), data=(784,), batch=(64,), dtype=("f4",)),
    full=grid(latent=(64,), hidden=(256, 512), data=(784,), batch=(1, 64, 256), dtype=("f4",))
    + grid(latent=(64,), hidden=(256,), data=(784,), batch=(64,), dtype=("f8",)),
)
def generator_only(latent: int, hidden: int, data: int, batch: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """The generator's loss behind a frozen discriminator, with respect to the generator."""

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, v1: Any, c1: Any, v2: Any, c2: Any, z: Any) -> Any:
        x = pb.nn.dense_bias_act(w2, pb.nn.dense_bias_act(w1, z, b1, act="tanh"), b2)
        score = pb.nn.dense_bias_act(v2, pb.nn.dense_bias_act(v1, x, c1, act="relu"), c2)
        return np.mean(pb.nn.softplus(-score))

    return loss


@generator_only.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], latent: int, hidden: int, data: int, batch: int) -> Inputs:
    arguments: Inputs = {}
    for weight, bias, outputs, inputs in (
        ("w1", "b1", hidden, latent),
        ("w2", "b2", data, hidden),
        ("v1", "c1", hidden, data),
        ("v2", "c2", 1, hidden),
    ):
        arguments[weight] = (rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(dtype)
        arguments[bias] = (0.1 * rng.standard_normal(outputs)).astype(dtype)
    return {**arguments, "z": rng.standard_normal((latent, batch)).astype(dtype)}


@generator_only.oracle
@generator_only.peer("numpy")
def _(
    w1: Any, b1: Any, w2: Any, b2: Any, v1: Any, c1: Any, v2: Any, c2: Any, z: Any, **sizes: int
) -> ValueAndGradients:
    h = w1 @ z
    h += b1[:, None]
    np.tanh(h, out=h)
    x = w2 @ h
    x += b2[:, None]
    k = v1 @ x
    k += c1[:, None]
    np.maximum(k, 0, out=k)
    score = v2 @ k
    score += c2[:, None]
    value = np.mean(np.maximum(-score, 0) + np.log1p(np.exp(-np.abs(score))))
    score_bar = 0.5 * (np.tanh(0.5 * score) - 1) / sizes["batch"]
    k_bar = v2.T @ score_bar
    k_bar *= k > 0
    x_bar = v1.T @ k_bar
    h_bar = w2.T @ x_bar
    h_bar *= 1 - h * h
    return value, {"w1": h_bar @ z.T, "b1": h_bar.sum(axis=1), "w2": x_bar @ h.T, "b2": x_bar.sum(axis=1)}
