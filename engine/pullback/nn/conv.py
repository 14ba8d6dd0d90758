"""Convolutional layers and pooling over one to three axes: (batch, channels, …)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.nn.layer_rules import Act, as_arrays, check_bias_argument, run_layer
from pullback.rules import conv_layer, convolution, pooling
from pullback.rules.sliding import Pads

Sizes = int | Sequence[int]
Padding = int | Sequence[int | Sequence[int]]


def conv(
    w: Any,
    x: Any,
    *,
    stride: Sizes = 1,
    pad: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    flipped: bool = False,
) -> Any:
    """Slide w (outputs, channels / groups, …) over x (batch, channels, …), one to three axes.

    `stride`, `pad` and `dilation` are one number or one per axis; an axis is padded by zeros, the same number on both
    sides or a pair (before, after). The kernel is not flipped, as in most libraries; `flipped=True` turns it round first,
    which is a convolution as mathematics has it and the default of NNlib.

        y = pb.nn.conv(w, x, stride=2, pad=(1, (0, 1)))
    """
    w, x = as_arrays(w, x)
    params = _params("conv", w, x, stride, pad, dilation, groups)
    return convolution.conv(reversed_kernel(w) if flipped else w, x, **params)


def conv_bias_act(
    w: Any,
    x: Any,
    b: Any = None,
    act: Act = "identity",
    *,
    stride: Sizes = 1,
    pad: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    flipped: bool = False,
) -> Any:
    """act(conv(w, x) + b), with b one number per output channel, shape (outputs,), or none.

    Outside the unfused tier one array where the derivative of the activation can be written from its output, two where it
    needs its input. See `conv` and `dense_bias_act`.

        y = pb.nn.conv_bias_act(w, x, b, act="relu", pad=1)
    """
    check_bias_argument("conv_bias_act", b)
    w, x, b = as_arrays(w, x, b)
    params = _params("conv_bias_act", w, x, stride, pad, dilation, groups)
    outputs = np.shape(w)[0]
    if b is not None and np.shape(b) not in ((outputs,), (1, outputs, *[1] * (np.ndim(w) - 2))):
        raise ValueError(
            f"conv_bias_act: a bias of shape {np.shape(b)} does not fit {outputs} output channels; give it shape ({outputs},)"
        )
    w = reversed_kernel(w) if flipped else w

    def reference(w: Any, x: Any, b: Any = None) -> Any:
        z = convolution.conv(w, x, **params)
        return z if b is None else z + conv_layer.channel_column(b, np.ndim(z))

    return run_layer(conv_layer.conv_bias_act, act, (w, x) if b is None else (w, x, b), params, reference)


def mean_pool(x: Any, window: Sizes, *, stride: Sizes | None = None, pad: Padding = 0) -> Any:
    """Mean of every window of x (batch, channels, …); padding counts as zeros. The stride is the window unless given.

    y = pb.nn.mean_pool(x, 2)
    """
    (x,) = as_arrays(x)
    return pooling.mean_pool(x, **_pool_params("mean_pool", x, window, stride, pad))


def max_pool(x: Any, window: Sizes, *, stride: Sizes | None = None, pad: Padding = 0) -> Any:
    """Maximum of every window of x (batch, channels, …), not counting padding. The stride is the window unless given.

    Elements that tie for a maximum share its cotangent equally.

        y = pb.nn.max_pool(x, (2, 2))
    """
    (x,) = as_arrays(x)
    return pooling.max_pool(x, **_pool_params("max_pool", x, window, stride, pad))


def reversed_kernel(w: Any) -> Any:
    """A kernel with its spatial axes reversed."""
    return w[(slice(None), slice(None), *[slice(None, None, -1)] * (np.ndim(w) - 2))]


def _params(layer: str, w: Any, x: Any, stride: Sizes, pad: Padding, dilation: Sizes, groups: int) -> dict[str, Any]:
    axes = np.ndim(w) - 2
    if not 1 <= axes <= 3:
        raise ValueError(
            f"{layer}: w is (outputs, channels / groups, …) with one to three more axes, got {np.shape(w)}"
        )
    if np.ndim(x) == axes + 1:
        raise ValueError(
            f"{layer}: x of shape {np.shape(x)} is one example without a batch; pass x[None] and take y[0]"
        )
    params = {
        "stride": _per_axis(layer, "stride", stride, axes, at_least=1),
        "pad": _pads(layer, pad, axes),
        "dilation": _per_axis(layer, "dilation", dilation, axes, at_least=1),
        "groups": _per_axis(layer, "groups", groups, 1, at_least=1)[0],
    }
    shapes_fit = np.ndim(x) == axes + 2 and np.shape(w)[1] * params["groups"] == np.shape(x)[1]
    if not shapes_fit or np.shape(w)[0] % params["groups"]:
        raise ValueError(
            f"{layer}: w of shape {np.shape(w)} does not fit x of shape {np.shape(x)} in {params['groups']} groups; w is "
            "(outputs, channels / groups, …), x is (batch, channels, …), and groups divides both"
        )
    return params


def _pool_params(layer: str, x: Any, window: Sizes, stride: Sizes | None, pad: Padding) -> dict[str, Any]:
    axes = np.ndim(x) - 2
    if not 1 <= axes <= 3:
        raise ValueError(
            f"{layer}: x is (batch, channels, …) with one to three more axes, got {np.shape(x)}; for one example pass x[None]"
        )
    if getattr(x, "dtype", np.dtype(float)).kind not in "fi":
        raise TypeError(f"{layer}: x has dtype {x.dtype}; pass real numbers")
    sizes = _per_axis(layer, "window", window, axes, at_least=1)
    pads = _pads(layer, pad, axes)
    if any(max(sides) >= size for sides, size in zip(pads, sizes, strict=True)):
        raise ValueError(
            f"{layer}: padding {pads} leaves windows of {sizes} without an element; pad less than the window"
        )
    steps = sizes if stride is None else _per_axis(layer, "stride", stride, axes, at_least=1)
    return {"window": sizes, "stride": steps, "pad": pads}


def _per_axis(layer: str, name: str, value: Sizes, axes: int, *, at_least: int) -> tuple[int, ...]:
    values: tuple[Any, ...] = (value,) * axes if isinstance(value, int | np.integer) else tuple(value)
    whole = all(isinstance(entry, int | np.integer) and not isinstance(entry, bool) for entry in values)
    if len(values) != axes or not whole or min(values) < at_least:
        raise ValueError(
            f"{layer}: {name} is one whole number of at least {at_least}, or {axes} of them, got {value!r}"
        )
    return tuple(int(entry) for entry in values)


def _pads(layer: str, pad: Padding, axes: int) -> Pads:
    sides = (pad,) * axes if isinstance(pad, int | np.integer) else tuple(pad)
    if len(sides) != axes:
        raise ValueError(f"{layer}: pad is one number, or {axes} numbers or pairs (before, after), got {pad!r}")
    pairs = [_per_axis(layer, "pad", side, 2, at_least=0) for side in sides]
    return tuple((before, after) for before, after in pairs)
