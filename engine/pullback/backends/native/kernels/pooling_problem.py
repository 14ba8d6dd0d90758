"""A pooling, or what belongs to the derivative of one, as a problem without a place in memory."""

from typing import Any

import numpy as np

from pullback.backends.native.kernels.convolution.correlation import Layout
from pullback.backends.native.kernels.convolution.planes import Planes
from pullback.backends.native.kernels.convolution.sliding_window import batch_axis, forward_axes
from pullback.core.primitive import Primitive
from pullback.dataclass import dataclass
from pullback.rules.sliding import SlidingWindow


@dataclass(frozen=True, slots=True)
class Pooling:
    """One pooling or derivative of it; its own key."""

    primitive: Primitive
    sliding: SlidingWindow
    operands: tuple[Layout, ...]
    result: Layout
    examples: int
    channels: int
    dtype: np.dtype[Any]

    @property
    def planes(self) -> Planes:
        """The copy of one channel of one example."""
        axes = (batch_axis(1), *forward_axes(self.sliding))
        return Planes(axes, (1, *self.sliding.out), 1, tuple(range(len(axes))), 64 // self.dtype.itemsize)

    def copy_size(self, vector_bits: int) -> int:
        """Elements of memory for one copy, whole lines, and what is read past its end."""
        return self.planes.size + 2 * vector_bits // 32
