"""A convolution over one or two axes, with bias and activation, under a quadratic loss.

    L(w, x, b) = sum(y**2)    y = act(z)    z[n, o] = sum over c of w[o, c] * x[n, c], plus b[o]

w (channels, channels, 3, …), x (n, channels, side, …) padded by one, b (channels,); the kernel is moved by `stride`. With
z_bar = 2 y * act'(z):

    w_bar = x correlated with z_bar    x_bar = z_bar convolved with w    b_bar = z_bar summed over images and pixels
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.activations import activated, loss_and_slope, slope
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt=("w", "x", "b"),
    quick=grid(n=(2,), channels=(8,), side=(16,), act=("relu",), axes=(2,), stride=(1,), dtype=("f4",)),
    standard=grid(n=(8,), channels=(16,), side=(32,), act=("relu", "tanh"), axes=(2,), stride=(1, 2), dtype=("f4",))
    + grid(n=(8,), channels=(16,), side=(1024,), act=("relu",), axes=(1,), stride=(1,), dtype=("f4",)),
    full=grid(
        n=(8,),
        channels=(16,),
        side=(32,),
        act=("identity", "relu", "tanh", "sigmoid", "gelu"),
        axes=(2,),
        stride=(1, 2),
        dtype=("f4", "f8"),
    )
    + grid(n=(8,), channels=(16,), side=(1024,), act=("relu", "tanh"), axes=(1,), stride=(1, 2), dtype=("f4", "f8"))
    + grid(n=(32,), channels=(64,), side=(56,), act=("relu",), axes=(2,), stride=(1,), dtype=("f4",)),
)
def conv_bias_act(n: int, channels: int, side: int, act: str, axes: int = 2, stride: int = 1) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(act(conv(w, x) + b)**2), 3 elements an axis, with respect to w, x and b."""

    def loss(w: Any, x: Any, b: Any) -> Any:
        return np.sum(pb.nn.conv_bias_act(w, x, b, act=act, pad=1, stride=stride) ** 2)

    return loss


@conv_bias_act.inputs
def _(
    rng: np.random.Generator,
    dtype: np.dtype[Any],
    n: int,
    channels: int,
    side: int,
    act: str,  # noqa: ARG001
    axes: int = 2,
    stride: int = 1,  # noqa: ARG001
) -> Inputs:
    kernel = (channels, channels, *(3,) * axes)
    return {
        "w": (rng.standard_normal(kernel) / np.sqrt(channels * 3**axes)).astype(dtype),
        "x": rng.standard_normal((n, channels, *(side,) * axes)).astype(dtype),
        "b": rng.standard_normal(channels).astype(dtype),
    }


def _taps(side: int, axes: int, stride: int) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """The elements of a padded image that each element of the kernel meets."""
    for tap in itertools.product(range(3), repeat=axes):
        yield tap, tuple(slice(start, start + side, stride) for start in tap)


def _padded(x: Any, axes: int) -> Any:
    return np.pad(x, ((0, 0), (0, 0), *((1, 1),) * axes))


@conv_bias_act.oracle
def _(
    w: Any,
    x: Any,
    b: Any,
    *,
    n: int,  # noqa: ARG001
    channels: int,  # noqa: ARG001
    side: int,
    act: str,
    axes: int = 2,
    stride: int = 1,
) -> ValueAndGradients:
    # One product of channels for each element of the kernel, image by image: no windows, no library's convolution.
    pixels = tuple(range(1, axes + 1))
    w_bar, x_bar, b_bar, value = np.zeros_like(w), np.empty_like(x), np.zeros_like(b), 0.0
    for image, image_bar in zip(_padded(x, axes), x_bar, strict=True):
        met = {tap: (..., *places) for tap, places in _taps(side, axes, stride)}
        z = sum(np.tensordot(w[(..., *tap)], image[places], 1) for tap, places in met.items())
        z = z + b.reshape(-1, *(1,) * axes)
        y = activated(act, z)
        z_bar = 2 * y * slope(act, z)
        value += np.sum(y**2)
        b_bar += z_bar.sum(pixels)
        padded_bar = np.zeros_like(image)
        for tap, places in met.items():
            w_bar[(..., *tap)] += np.tensordot(z_bar, image[places], (pixels, pixels))
            padded_bar[places] += np.tensordot(w[(..., *tap)], z_bar, ((0,), (0,)))
        image_bar[...] = padded_bar[(..., *(slice(1, -1),) * axes)]
    return value, {"w": w_bar, "x": x_bar, "b": b_bar}


@conv_bias_act.peer("numpy")
def _(
    w: Any,
    x: Any,
    b: Any,
    *,
    n: int,
    channels: int,
    side: int,
    act: str,
    axes: int = 2,
    stride: int = 1,
) -> ValueAndGradients:
    # Windows as columns, one image at a time so that they stay in the cache, and products of matrices.
    kernel = w.reshape(channels, -1)
    inside: Any = (..., *(slice(1, -1),) * axes)
    padded, out = _padded(x, axes), (-(-side // stride),) * axes
    columns = np.empty((channels, *(3,) * axes, *out), x.dtype)
    flat = columns.reshape(kernel.shape[1], -1)
    padded_bar = np.empty(padded.shape[1:], x.dtype)
    taps: list[tuple[Any, Any]] = [
        ((slice(None), *tap), (slice(None), *places)) for tap, places in _taps(side, axes, stride)
    ]
    w_bar, x_bar, b_bar, value = np.zeros_like(kernel), np.empty_like(x), np.zeros_like(b), x.dtype.type(0)
    for image in range(n):
        for tap, places in taps:
            np.copyto(columns[tap], padded[image][places])
        z = kernel @ flat
        z += b[:, None]
        loss, z_bar = loss_and_slope(act, z)
        value += loss
        w_bar += z_bar @ flat.T
        b_bar += z_bar.sum(1)
        columns_bar = (kernel.T @ z_bar).reshape(columns.shape)
        padded_bar.fill(0)
        for tap, places in taps:
            padded_bar[places] += columns_bar[tap]
        x_bar[image] = padded_bar[inside]
    return value, {"w": w_bar.reshape(w.shape), "x": x_bar, "b": b_bar}
