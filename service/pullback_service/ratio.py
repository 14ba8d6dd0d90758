"""A measured ratio: what every comparison of two measurements gives, from the upload to the page."""

from math import exp
from typing import Final, NamedTuple, TypeAlias

_LARGEST: Final = 700.0  # of logarithms whose exponential is a number

BoundedLogRatio: TypeAlias = tuple[float, float, float]
"""A log ratio, the lower and the upper end of its interval."""


class Ratio(NamedTuple):
    """A natural-log ratio with its interval over `n` groups. What nobody measured, or has no ratio, is None."""

    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None

    @classmethod
    def around(cls, log_ratio: float | None, width: float | None) -> "Ratio":
        """A ratio, and half the width of its interval where that is known."""
        if log_ratio is None or width is None:
            return cls(log_ratio)
        return cls(log_ratio, log_ratio - width, log_ratio + width)

    @property
    def bounded(self) -> BoundedLogRatio | None:
        """The ratio with both ends of its interval; None where one of the three is not known."""
        if self.log_ratio is None or self.low is None or self.high is None:
            return None
        return self.log_ratio, self.low, self.high

    def turned(self) -> "Ratio":
        """The ratio of the other one to this one."""
        return Ratio(_negative(self.log_ratio), _negative(self.high), _negative(self.low), self.n)


def value_before(after: float, log_ratio: float | None, otherwise: float | None) -> float | None:
    """The value before a change that is stated by its ratio; `otherwise` where none is."""
    return otherwise if log_ratio is None else after * exp(max(-_LARGEST, min(_LARGEST, -log_ratio)))


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


NO_RATIO: Final = Ratio()
