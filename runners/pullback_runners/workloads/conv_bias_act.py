"""A convolution with bias and activation under a quadratic loss.

    L(w, x, b) = sum(y**2)    y = act(z)    z[n, o] = sum over c of w[o, c] * x[n, c], plus b[o]

w (channels, channels, 3, 3), x (n, channels, side, side) padded by one, b (channels,). With z_bar = 2 y * act'(z):

    w_bar = x correlated with z_bar    x_bar = z_bar convolved with w    b_bar = z_bar summed over images and pixels
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Differentiated, Inputs, workload


@workload(wrt=("w", "x", "b"))
def conv_bias_act(n: int, channels: int, side: int, act: str) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(act(conv(w, x) + b)**2), 3 x 3, with respect to w, x and b."""

    def loss(w: Any, x: Any, b: Any) -> Any:
        return np.sum(pb.nn.conv_bias_act(w, x, b, act=act, pad=1) ** 2)

    return loss


@conv_bias_act.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int, channels: int, side: int, act: str) -> Inputs:  # noqa: ARG001
    return {
        "w": (rng.standard_normal((channels, channels, 3, 3)) / np.sqrt(9 * channels)).astype(dtype),
        "x": rng.standard_normal((n, channels, side, side)).astype(dtype),
        "b": rng.standard_normal(channels).astype(dtype),
    }


def _slope(act: str, y: Any) -> Any:
    """Derivative of an activation from its output."""
    if act == "tanh":
        return 1 - y**2
    if act == "relu":
        return (y > 0).astype(y.dtype)
    raise NotImplementedError(f"no closed form for act={act!r}; add its derivative to this oracle")


def _activated(act: str, z: Any) -> Any:
    return np.tanh(z) if act == "tanh" else np.maximum(z, 0)


@conv_bias_act.oracle
def _(w: Any, x: Any, b: Any, *, n: int, channels: int, side: int, act: str) -> Differentiated:  # noqa: ARG001
    # Nine shifted products of channels, image by image: no windows, no library's convolution.
    taps = list(itertools.product(range(3), range(3)))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    w_bar, x_bar, b_bar, value = np.zeros_like(w), np.empty_like(x), np.zeros_like(b), 0.0
    for image, image_bar in zip(padded, x_bar, strict=True):
        shifted = {(i, j): image[:, i : i + side, j : j + side] for i, j in taps}
        z = sum(np.tensordot(w[:, :, i, j], shifted[i, j], 1) for i, j in taps) + b[:, None, None]
        y = _activated(act, z)
        z_bar = 2 * y * _slope(act, y)
        value += np.sum(y**2)
        b_bar += z_bar.sum((1, 2))
        padded_bar = np.zeros_like(image)
        for i, j in taps:
            w_bar[:, :, i, j] += np.tensordot(z_bar, shifted[i, j], ((1, 2), (1, 2)))
            padded_bar[:, i : i + side, j : j + side] += np.tensordot(w[:, :, i, j], z_bar, ((0,), (0,)))
        image_bar[...] = padded_bar[:, 1:-1, 1:-1]
    return value, {"w": w_bar, "x": x_bar, "b": b_bar}


@conv_bias_act.peer("numpy")
def _(w: Any, x: Any, b: Any, *, n: int, channels: int, side: int, act: str) -> Differentiated:
    # Windows as columns, one image at a time so that they stay in the cache, and products of matrices.
    kernel, pixels = w.reshape(channels, -1), side * side
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    columns = np.empty((channels, 3, 3, side, side), x.dtype)
    padded_bar = np.empty((channels, side + 2, side + 2), x.dtype)
    w_bar, x_bar, b_bar, value = np.zeros_like(kernel), np.empty_like(x), np.zeros_like(b), x.dtype.type(0)
    for image in range(n):
        np.copyto(columns, windows[image].transpose(0, 3, 4, 1, 2))
        flat = columns.reshape(-1, pixels)
        y = kernel @ flat
        y += b[:, None]
        if act == "tanh":
            np.tanh(y, out=y)
            value += np.vdot(y, y)
            y *= 2 - 2 * y**2
        else:
            np.maximum(y, 0, out=y)
            value += np.vdot(y, y)
            y *= 2
        w_bar += y @ flat.T
        b_bar += y.sum(1)
        columns_bar = (kernel.T @ y).reshape(columns.shape)
        padded_bar.fill(0)
        for i, j in itertools.product(range(3), range(3)):
            padded_bar[:, i : i + side, j : j + side] += columns_bar[:, i, j]
        x_bar[image] = padded_bar[:, 1:-1, 1:-1]
    return value, {"w": w_bar.reshape(w.shape), "x": x_bar, "b": b_bar}
