"""Sums of products of weights and data at fixed offsets: what a convolution and its transpose have in common.

    target[n, o, q] = sum over channels i and taps k of weights[o, i, k] * source[n, i, step * q + offset_k]

A correlation is a problem without a place in memory; it is its own key.
"""

from typing import Any

import numpy as np

from pullback.backends.native.emission import StoredArray
from pullback.backends.native.kernels.convolution.sliding_window import Axis, batch_axis, forward_axes, transposed_axes
from pullback.dataclass import dataclass
from pullback.rules.sliding import SlidingWindow


@dataclass(frozen=True, slots=True)
class Layout:
    """Strides in elements, of examples, channels, and along each axis."""

    examples: int
    channels: int
    spatial: tuple[int, ...]

    @classmethod
    def of(cls, value: StoredArray) -> "Layout":
        """The layout of a value of shape (batch, channels, …)."""
        return cls(value.strides[0], value.strides[1], value.strides[2:])

    @property
    def strides(self) -> tuple[int, ...]:
        """All strides, in the order of the axes."""
        return (self.examples, self.channels, *self.spatial)

    @property
    def along(self) -> tuple[int, ...]:
        """Strides along examples and along each spatial axis."""
        return (self.examples, *self.spatial)


@dataclass(frozen=True, slots=True)
class Weights:
    """Strides in elements of weights, as the sum sees them: between groups, results, what is summed, and taps."""

    groups: int
    outs: int
    ins: int
    taps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Correlation:
    """One sum of products; the first axis is that of examples."""

    axes: tuple[Axis, ...]
    groups: int
    ins: int
    """Channels of the source in a group."""
    outs: int
    """Channels of the target in a group."""
    weights: Weights
    source: Layout
    target: Layout
    dtype: np.dtype[Any]

    @property
    def is_empty(self) -> bool:
        """True if nothing is summed: the target is zero."""
        return self.ins == 0 or not all(any(course.taps for course in axis.courses) for axis in self.axes)


def forward(sliding: SlidingWindow, groups: int, w: StoredArray, x: StoredArray, y: StoredArray) -> Correlation:
    """The convolution itself."""
    axes = (batch_axis(x.shape[0]), *forward_axes(sliding))
    outs = w.shape[0] // groups
    weights = Weights(outs * w.strides[0], w.strides[0], w.strides[1], (0, *w.strides[2:]))
    return Correlation(axes, groups, w.shape[1], outs, weights, Layout.of(x), Layout.of(y), y.dtype)


def transposed(sliding: SlidingWindow, groups: int, w: StoredArray, y: StoredArray, x: StoredArray) -> Correlation:
    """The transpose of the convolution with respect to its data."""
    axes = (batch_axis(y.shape[0]), *transposed_axes(sliding))
    outs = w.shape[0] // groups
    weights = Weights(outs * w.strides[0], w.strides[1], w.strides[0], (0, *w.strides[2:]))
    return Correlation(axes, groups, outs, w.shape[1], weights, Layout.of(y), Layout.of(x), x.dtype)
