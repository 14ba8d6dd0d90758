"""Value and gradients of LeNet on a batch of images: two convolutions with pooling, three dense layers, cross-entropy.

    h1 = pool(relu(conv(k1, x) + c1))     k1 (6, 1, 5, 5)      x (batch, 1, 28, 28)   h1 (batch, 6, 12, 12)
    h2 = pool(relu(conv(k2, h1) + c2))    k2 (16, 6, 5, 5)                            h2 (batch, 16, 4, 4)
    h3 = relu(w1 @ flat(h2) + b1)         w1 (120, 256)        one column a sample    h3 (120, batch)
    h4 = relu(w2 @ h3 + b2)               w2 (84, 120)                                h4 (84, batch)
    L  = -mean over samples of log softmax(w3 @ h4 + b3)[label]                       w3 (10, 84)

pool is the maximum of every 2 x 2; images and labels are constants. Batch 128 is the size at which Flux.jl's pull request
2327 says what a layer with bias and activation in one array is worth: gradients in 9.61 instead of 14.19 MiB, and in two
thirds of the time.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

PARAMETERS = ("k1", "c1", "k2", "c2", "w1", "b1", "w2", "b2", "w3", "b3")
SHAPES = {
    "k1": (6, 1, 5, 5),
    "k2": (16, 6, 5, 5),
    "w1": (120, 256),
    "w2": (84, 120),
    "w3": (10, 84),
}
CLASSES = 10


@workload(
    wrt=PARAMETERS,
    quick=grid(batch=(8,), dtype=("f4",)),
    standard=grid(batch=(128,), dtype=("f4",)),
    full=grid(batch=(1, 32, 128, 512), dtype=("f4",)) + grid(batch=(128,), dtype=("f8",)),
)
def lenet_step(batch: int) -> Callable[..., Any]:
    """Cross-entropy of LeNet on a batch with respect to its ten parameters."""

    def loss(
        k1: Any, c1: Any, k2: Any, c2: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any
    ) -> Any:
        h = pb.nn.max_pool(pb.nn.conv_bias_act(k1, x, c1, act="relu"), 2)
        h = pb.nn.max_pool(pb.nn.conv_bias_act(k2, h, c2, act="relu"), 2)
        h = np.reshape(h, (batch, -1)).T
        h = pb.nn.dense_bias_act(w1, h, b1, act="relu")
        h = pb.nn.dense_bias_act(w2, h, b2, act="relu")
        return pb.nn.logitcrossentropy(pb.nn.dense_bias_act(w3, h, b3), labels, axis=0)

    return loss


@lenet_step.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], batch: int) -> Inputs:
    weights: Inputs = {}
    for weight, bias in zip(PARAMETERS[::2], PARAMETERS[1::2], strict=True):
        shape = SHAPES[weight]
        weights[weight] = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(dtype)
        weights[bias] = (0.1 * rng.standard_normal(shape[0])).astype(dtype)
    return {
        **weights,
        "x": rng.standard_normal((batch, 1, 28, 28)).astype(dtype),
        "labels": rng.integers(0, CLASSES, batch),
    }


def _windows(x: Any) -> Any:
    """Every 5 x 5 window of x (batch, channels, side, side), one after the other in memory, by images and pixels."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (5, 5), axis=(2, 3))
    batch, channels, side, _, _, _ = windows.shape
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(batch * side * side, channels * 25)


def _convolved(x: Any, k: Any, c: Any) -> tuple[Any, Any]:
    """relu(conv(k, x) + c), the channels last, and the windows of x."""
    windows, side = _windows(x), x.shape[2] - 4
    y = windows @ k.reshape(len(k), -1).T
    y += c
    np.maximum(y, 0, out=y)
    return y.reshape(len(x), side, side, len(k)), windows


def _pooled(y: Any) -> tuple[Any, Any]:
    """Maximum of every 2 x 2 of y (batch, side, side, channels), and the share of each element in its maximum."""
    batch, side, _, channels = y.shape
    squares = y.reshape(batch, side // 2, 2, side // 2, 2, channels)
    highest = squares.max(axis=(2, 4), keepdims=True)
    shares = (squares == highest).astype(y.dtype)
    shares /= shares.sum(axis=(2, 4), keepdims=True)
    return highest[:, :, 0, :, 0], shares


def _unpooled(h_bar: Any, shares: Any, y: Any) -> Any:
    """The cotangent of the convolution's result, by pixels and channels, from that of the pooling's result."""
    z_bar = shares * h_bar[:, :, None, :, None]
    z_bar = z_bar.reshape(y.shape)
    z_bar *= y > 0
    return z_bar.reshape(-1, y.shape[3])


@lenet_step.oracle
@lenet_step.peer("numpy")
def _(
    k1: Any,
    c1: Any,
    k2: Any,
    c2: Any,
    w1: Any,
    b1: Any,
    w2: Any,
    b2: Any,
    w3: Any,
    b3: Any,
    x: Any,
    labels: Any,
    *,
    batch: int,
) -> ValueAndGradients:
    # Windows copied out and multiplied, the channels last until the dense layers.
    y1, windows1 = _convolved(x, k1, c1)
    h1, shares1 = _pooled(y1)
    y2, windows2 = _convolved(h1.transpose(0, 3, 1, 2), k2, c2)
    h2, shares2 = _pooled(y2)
    flat = h2.transpose(0, 3, 1, 2).reshape(batch, -1).T
    h3 = np.maximum(w1 @ flat + b1[:, None], 0)
    h4 = np.maximum(w2 @ h3 + b2[:, None], 0)
    z = w3 @ h4 + b3[:, None]
    z -= z.max(axis=0)
    picked = (labels, np.arange(batch))
    at_labels = z[picked]
    np.exp(z, out=z)
    total = z.sum(axis=0)
    value = np.mean(np.log(total) - at_labels)

    z /= total
    z[picked] -= 1
    z /= batch
    h4_bar = w3.T @ z
    h4_bar *= h4 > 0
    h3_bar = w2.T @ h4_bar
    h3_bar *= h3 > 0
    h2_bar = (w1.T @ h3_bar).T.reshape(batch, 16, 4, 4).transpose(0, 2, 3, 1)
    z2_bar = _unpooled(h2_bar, shares2, y2)
    windows2_bar = (z2_bar @ k2.reshape(16, -1)).reshape(batch, 8, 8, 6, 5, 5)
    h1_bar = np.zeros(h1.shape, h1.dtype)
    for i, j in np.ndindex(5, 5):
        h1_bar[:, i : i + 8, j : j + 8] += windows2_bar[..., i, j]
    z1_bar = _unpooled(h1_bar, shares1, y1)
    return value, {
        "k1": (z1_bar.T @ windows1).reshape(k1.shape),
        "c1": z1_bar.sum(axis=0),
        "k2": (z2_bar.T @ windows2).reshape(k2.shape),
        "c2": z2_bar.sum(axis=0),
        "w1": h3_bar @ flat.T,
        "b1": h3_bar.sum(axis=1),
        "w2": h4_bar @ h3.T,
        "b2": h4_bar.sum(axis=1),
        "w3": z @ h4.T,
        "b3": z.sum(axis=1),
    }
