"""A sliding window along one axis: the elements of the source that each result reads.

Result q reads, through its taps k, the source at `step * q + offset_k`; outside the source there are zeros. A
convolution is this with its stride as the step. Its transpose with respect to the data is this with a step of 1, in one
course for every remainder of positions by the stride: results of one course have the same taps, and are written
`spread` apart.
"""

from functools import cached_property

from pullback.dataclass import dataclass
from pullback.rules.sliding import SlidingWindow


@dataclass(frozen=True, slots=True)
class Tap:
    """One element of the kernel along an axis: its index there, and the offset in the source for the first result."""

    index: int
    offset: int


@dataclass(frozen=True, slots=True)
class Course:
    """Results with the same taps, which may be none: their number, and where the first is written."""

    first: int
    count: int
    taps: tuple[Tap, ...]


@dataclass(frozen=True)
class Axis:
    """One axis, of `size` elements in the source. What follows of it is computed once: every plan that is weighed asks for it."""

    size: int
    step: int
    courses: tuple[Course, ...]
    spread: int = 1

    @cached_property
    def count(self) -> int:
        """Results of the longest course."""
        return max(course.count for course in self.courses)

    @cached_property
    def _offsets(self) -> list[int]:
        return [tap.offset for course in self.courses for tap in course.taps]

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """The remainders of offsets by the step, ascending: source elements of one phase lie together when packed."""
        return tuple(sorted({offset % self.step for offset in self._offsets}))

    @cached_property
    def low(self) -> int:
        """The lowest offset of the first result, in steps."""
        return min(self._offsets) // self.step

    @cached_property
    def reach(self) -> int:
        """The distance in steps between the first and the last element that a result reads."""
        return max(self._offsets) // self.step - self.low

    @cached_property
    def is_inside(self) -> bool:
        """True if all rows of all phases are in the source, also those with an element that no result reads."""
        extent = self.count + self.reach
        return self.step * self.low + self.phases[0] >= 0 and (
            self.step * (self.low + extent - 1) + self.phases[-1] < self.size
        )

    @cached_property
    def can_skip(self) -> bool:
        """True if the taps of every result that are inside the source are a range, and for some results not all."""
        offsets = sorted(self._offsets)
        return (
            self.step == 1
            and len(self.courses) == 1
            and not self.is_inside
            and offsets == list(range(offsets[0], offsets[0] + len(offsets)))
        )

    @cached_property
    def mean_met(self) -> float:
        """The mean number of taps inside the source, over all results; for an axis that can skip."""
        result_counts = (min(self.count, self.size - offset) - max(0, -offset) for offset in self._offsets)
        return sum(max(0, results) for results in result_counts) / self.count

    def met(self, phase: int) -> tuple[int, int]:
        """Begin and end of what a row of one phase has of the source; the rest is zeros."""
        first, extent = self.step * self.low + phase, self.count + self.reach
        begin = min(extent, max(0, -(first // self.step)))
        return begin, max(begin, min(extent, (self.size - 1 - first) // self.step + 1))

    @cached_property
    def shared(self) -> int:
        """The number of zeros at the end of one row that are those at the beginning of the next."""
        ranges = [self.met(phase) for phase in self.phases]
        end = self.count + self.reach
        return min(self.reach, *(min(begin, end - stop) for begin, stop in ranges))

    def shift(self, tap: Tap) -> int:
        """The distance in steps from `low` to a tap."""
        return tap.offset // self.step - self.low


def batch_axis(examples: int) -> Axis:
    """Examples are one more axis, along which nothing slides."""
    return Axis(examples, 1, (Course(0, examples, (Tap(0, 0),)),))


def forward_axes(sliding: SlidingWindow) -> tuple[Axis, ...]:
    """The spatial axes of a convolution."""
    taps = (
        tuple(Tap(k, dilation * k - low) for k in range(kernel))
        for kernel, dilation, (low, _) in zip(sliding.kernel, sliding.dilation, sliding.pad, strict=True)
    )
    return tuple(
        Axis(size, stride, (Course(0, count, own),))
        for size, count, stride, own in zip(sliding.size, sliding.out, sliding.stride, taps, strict=True)
    )


def transposed_axes(sliding: SlidingWindow) -> tuple[Axis, ...]:
    """The spatial axes of the transpose with respect to the data."""
    return tuple(_transposed(sliding, axis) for axis in range(len(sliding.size)))


def _transposed(sliding: SlidingWindow, axis: int) -> Axis:
    stride, dilation, low = sliding.stride[axis], sliding.dilation[axis], sliding.pad[axis][0]
    courses = []
    for first in range(min(stride, sliding.size[axis])):
        places = [(k, first + low - dilation * k) for k in range(sliding.kernel[axis])]
        taps = tuple(Tap(k, place // stride) for k, place in places if place % stride == 0)
        courses.append(Course(first, -(-(sliding.size[axis] - first) // stride), taps))
    return Axis(sliding.out[axis], 1, tuple(courses), stride)
