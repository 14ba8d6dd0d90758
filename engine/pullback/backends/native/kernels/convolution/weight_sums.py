"""The gradient of a convolution with respect to its weights, as a problem without a place in memory.

    weights[o, i, k] = sum over examples n and results q of y[n, o, q] * x[n, i, stride * q + dilation * k - low]

There are two ways: vectors across channels (channel_weight_sums.py), and, of few channels, vectors along rows (row_weight_sums.py).
"""

from typing import Any

import numpy as np

from pullback.backends.native.emission import StoredArray
from pullback.backends.native.kernels.convolution.correlation import Layout
from pullback.dataclass import dataclass
from pullback.rules.sliding import SlidingWindow


@dataclass(frozen=True, slots=True)
class WeightSums:
    """One gradient with respect to weights; its own key."""

    sliding: SlidingWindow
    examples: int
    groups: int
    ins: int
    outs: int
    """Channels of x and of y in a group."""
    weights: Layout
    """The layout of the result, whose examples are outputs."""
    y: Layout
    x: Layout
    dtype: np.dtype[Any]


def weight_sums(sliding: SlidingWindow, groups: int, y: StoredArray, x: StoredArray, w: StoredArray) -> WeightSums:
    """The gradient of a convolution of these operands."""
    ins, outs = x.shape[1] // groups, y.shape[1] // groups
    return WeightSums(sliding, x.shape[0], groups, ins, outs, Layout.of(w), Layout.of(y), Layout.of(x), w.dtype)
