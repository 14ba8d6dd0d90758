"""Forest plots: ratios with their intervals below each other on one logarithmic axis, and the ratio of every group as a dot.

Each row is a drawing of its own, so that it stands in the row of a table beside its words; all share one scale, on which 1 is a line.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pullback_service.ratio import Ratio

WIDTH, ROW, HEAD = 320, 26, 20
_MARGIN = 14
_LEAST_SPAN = 0.02  # in natural log, on each side of 1
_JITTER = (0, -5, 5, -3, 3)  # dots of one place side by side


@dataclass(frozen=True)
class Forest:
    """The scale that all rows share, in natural logs."""

    left: float
    right: float

    @classmethod
    def around(cls, ratios: Sequence[Ratio]) -> "Forest":
        """A scale on which every ratio with its interval has its place, and 1."""
        known = [bound for ratio in ratios for bound in ratio[:3] if bound is not None]
        return cls(min([-_LEAST_SPAN, *known]), max([_LEAST_SPAN, *known]))

    def head(self) -> str:
        """The axis, with round factors."""
        marks = "".join(
            f'<text class="forest-tick" x="{self._x(math.log(factor)):.0f}" y="14" text-anchor="middle">{_said(factor)}×</text>'
            for factor in self.factors
        )
        return _drawing(HEAD, marks)

    def row(self, ratio: Ratio, groups: Sequence[float] = (), *, tone: str = "plain") -> str:
        """A ratio with its interval; empty without one."""
        return "" if ratio.log_ratio is None else _drawing(ROW, "".join(self._marks(ratio, groups)), tone)

    @property
    def factors(self) -> tuple[float, ...]:
        """Round factors on the axis, 1 among them: those that keep some distance."""
        low, high = math.exp(self.left), math.exp(self.right)
        steps = (1.001, 1.002, 1.005, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1000, 10_000, 100_000)
        least = (self.right - self.left) / 5
        chosen = [1.0]
        for factor in steps:
            for side in (factor, 1 / factor):
                far = all(abs(math.log(side / other)) >= least for other in chosen)
                if low <= side <= high and far:
                    chosen.append(side)
        return tuple(sorted(chosen))

    def _x(self, log_ratio: float) -> float:
        share = (log_ratio - self.left) / (self.right - self.left)
        return _MARGIN + min(1.0, max(0.0, share)) * (WIDTH - 2 * _MARGIN)

    def _marks(self, ratio: Ratio, groups: Sequence[float]) -> Iterator[str]:
        middle = ROW / 2
        yield f'<path class="forest-one" d="M{self._x(0.0):.1f} 0V{ROW}"/>'
        for number, group in enumerate(groups):
            y = middle + _JITTER[number % len(_JITTER)]
            yield f'<circle class="forest-group" cx="{self._x(group):.1f}" cy="{y:.1f}" r="1.8"/>'
        if ratio.low is not None and ratio.high is not None:
            yield f'<path class="forest-interval" d="M{self._x(ratio.low):.1f} {middle}H{self._x(ratio.high):.1f}"/>'
        x = self._x(ratio.log_ratio or 0.0)
        yield f'<path class="forest-middle" d="M{x:.1f} {middle - 5}l5 5l-5 5l-5 -5Z"/>'


def _drawing(height: int, marks: str, tone: str = "plain") -> str:
    return (
        f'<svg class="forest forest-{tone}" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" aria-hidden="true" '
        f'focusable="false">{marks}</svg>'
    )


def _said(factor: float) -> str:
    if factor >= 10:
        return f"{factor:.0f}"
    return f"{factor:.4g}" if factor >= 0.1 else f"{factor:.2g}"
