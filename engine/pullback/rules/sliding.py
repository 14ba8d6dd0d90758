"""Windows that slide over the last axes of arrays (batch, channels, …): what convolutions and pooling share.

The geometry is checked once, here; sizes along the sliding axes are called spatial.
"""

from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from pullback.core.types import Shape
from pullback.dataclass import dataclass

Pads = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """A window of `kernel` elements, `dilation` apart, moved by `stride` over `size` elements with `pad` zeros around."""

    size: Shape
    kernel: Shape
    stride: Shape
    pad: Pads
    dilation: Shape

    @property
    def padded(self) -> Shape:
        """Spatial sizes with the padding."""
        return tuple(size + low + high for size, (low, high) in zip(self.size, self.pad, strict=True))

    @property
    def out(self) -> Shape:
        """The number of places of the window along each axis."""
        return _out(self)

    def check(self, name: str) -> None:
        """Refuse a window that has no place."""
        if min(self.kernel, default=1) < 1 or min(self.out, default=1) < 1:
            raise ValueError(
                f"{name}: a window of {self.kernel} with dilation {self.dilation} does not fit into {self.size} padded "
                f"by {self.pad}; pad more or take a smaller window"
            )

    @property
    def is_pointwise(self) -> bool:
        """True if every window is one element, and every element a window."""
        return prod(self.kernel) == 1 and self.stride == (1,) * len(self.size) and not any(map(any, self.pad))

    @property
    def interior(self) -> tuple[Any, ...]:
        """Key of what is not padding."""
        return (..., *(slice(low, low + size) for size, (low, _) in zip(self.size, self.pad, strict=True)))

    def windows(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """All windows of a padded array (n, c, …) as a view (n, c, kernel…, out…)."""
        strides = x.strides[-len(self.size) :]
        return np.lib.stride_tricks.as_strided(
            x,
            (*x.shape[: -len(self.size)], *self.kernel, *self.out),
            (
                *x.strides[: -len(self.size)],
                *(step * dilation for step, dilation in zip(strides, self.dilation, strict=True)),
                *(step * stride for step, stride in zip(strides, self.stride, strict=True)),
            ),
            writeable=False,
        )

    def elements(self) -> tuple[tuple[tuple[int, ...], tuple[Any, ...]], ...]:
        """Places of all elements of the window, each with the key of its operand in a padded array."""
        return _elements(self)


@lru_cache(maxsize=1024)
def _out(sliding: SlidingWindow) -> Shape:
    return tuple(
        (size - dilation * (kernel - 1) - 1) // stride + 1
        for size, kernel, stride, dilation in zip(
            sliding.padded, sliding.kernel, sliding.stride, sliding.dilation, strict=True
        )
    )


@lru_cache(maxsize=64)
def _elements(sliding: SlidingWindow) -> tuple[tuple[tuple[int, ...], tuple[Any, ...]], ...]:
    """The elements of `SlidingWindow.elements`, cached: a rule walks through them once for each block of examples."""
    found = []
    for place in product(*map(range, sliding.kernel)):
        starts = [offset * dilation for offset, dilation in zip(place, sliding.dilation, strict=True)]
        key = (
            slice(start, start + (count - 1) * stride + 1, stride)
            for start, count, stride in zip(starts, sliding.out, sliding.stride, strict=True)
        )
        found.append((place, (..., *key)))
    return tuple(found)
