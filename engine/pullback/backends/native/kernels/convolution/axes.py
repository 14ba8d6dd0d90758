"""What slides along one axis: which elements of the source a result meets there.

Result q meets, through its taps k, the source at `step * q + offset_k`; outside the source there are zeros. A convolution is
this with its stride as the step. Its transpose with respect to the data is this with a step of 1, once for every remainder
of positions by the stride: results of one remainder meet the same taps, and are written `spread` apart.
"""

from dataclasses import dataclass
from itertools import product

from pullback.rules.sliding import Sliding


@dataclass(frozen=True, slots=True)
class Tap:
    """One element of the kernel along an axis: its index there, and where it meets the source for the first result."""

    index: int
    offset: int


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: of `size` elements in the source, and of `count` results, the first of them written at `first`."""

    size: int
    count: int
    step: int
    taps: tuple[Tap, ...]
    first: int = 0
    spread: int = 1

    @property
    def phases(self) -> tuple[int, ...]:
        """The remainders by the step of what is met, ascending: source elements of one phase lie together when packed."""
        return tuple(sorted({tap.offset % self.step for tap in self.taps}))

    @property
    def low(self) -> int:
        """The least of what is met by the first result, in steps."""
        return min(tap.offset // self.step for tap in self.taps)

    @property
    def reach(self) -> int:
        """How many steps more than one the results of one place meet."""
        return max(tap.offset // self.step for tap in self.taps) - self.low

    @property
    def is_inside(self) -> bool:
        """Whether no result meets a zero from outside."""
        offsets = [tap.offset for tap in self.taps]
        return min(offsets) >= 0 and max(offsets) + self.step * (self.count - 1) < self.size

    def shift(self, tap: Tap) -> int:
        """How many steps after `low` a tap is met."""
        return tap.offset // self.step - self.low


def batch_axis(examples: int) -> Axis:
    """Examples are one more axis, along which nothing slides."""
    return Axis(examples, examples, 1, (Tap(0, 0),))


def forward_axes(sliding: Sliding) -> tuple[Axis, ...]:
    """The spatial axes of a convolution."""
    taps = (
        tuple(Tap(k, dilation * k - low) for k in range(kernel))
        for kernel, dilation, (low, _) in zip(sliding.kernel, sliding.dilation, sliding.pad, strict=True)
    )
    return tuple(
        Axis(size, count, stride, own)
        for size, count, stride, own in zip(sliding.size, sliding.out, sliding.stride, taps, strict=True)
    )


def transposed_axes(sliding: Sliding) -> list[tuple[Axis, ...]]:
    """The spatial axes of the transpose, for every combination of remainders; of those that meet nothing taps are empty."""
    along = [
        [_transposed(sliding, axis, first) for first in range(min(sliding.stride[axis], sliding.size[axis]))]
        for axis in range(len(sliding.size))
    ]
    return [tuple(axes) for axes in product(*along)]


def _transposed(sliding: Sliding, axis: int, first: int) -> Axis:
    stride, dilation, low = sliding.stride[axis], sliding.dilation[axis], sliding.pad[axis][0]
    met = [(k, first + low - dilation * k) for k in range(sliding.kernel[axis])]
    taps = tuple(Tap(k, place // stride) for k, place in met if place % stride == 0)
    count = -(-(sliding.size[axis] - first) // stride)
    return Axis(sliding.out[axis], count, 1, taps, first, stride)
