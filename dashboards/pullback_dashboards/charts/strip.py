"""Strips: the ratio of every group as a dot on one line, with the interval under it, as static SVG.

What an interval cannot show is seen here: two heaps of dots where a program has two speeds, one stray group, a drift.
The commit before lies above in hollow dots, on the same scale. The scale spans at least ±1 %.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from pullback_service.ratio import NO_RATIO, Ratio

WIDTH, ROW, FOOT = 300, 22, 18
_MARGIN = 10
_LEAST_SPAN = 0.02  # in log ratio
_JITTER = (0, -4, 4, -2, 2)  # dots of one place side by side, in the order of the groups
_BEYOND = 1e6  # from here on a tick has a power of ten


class Groups(NamedTuple):
    """The log ratio of every group, in the order in which they were measured, and the ratio made of them."""

    log_ratios: tuple[float, ...]
    ratio: Ratio = NO_RATIO

    def plain(self) -> dict[str, Any]:
        """Representation in JSON."""
        return {"log_ratios": self.log_ratios, "low": self.ratio.low, "high": self.ratio.high}


def strip(now: Groups, before: Groups | None = None, *, tone: str = "plain") -> str:
    """The SVG element, styled by the page through the classes it carries. Empty without any group."""
    if not now.log_ratios:
        return ""
    rows = [("now", now)] if before is None or not before.log_ratios else [("before", before), ("now", now)]
    values = [value for _, (ratios, (_, low, high, _)) in rows for value in (*ratios, low, high) if value is not None]
    low, high = min(values), max(values)
    missing = max(0.0, _LEAST_SPAN - (high - low)) / 2
    scale = _Scale(low - missing, high + missing)
    height = ROW * len(rows) + FOOT
    drawn = "".join(
        part for number, (name, groups) in enumerate(rows) for part in _row(groups, scale, ROW * number + ROW / 2, name)
    )
    return (
        f'<svg class="strip strip-{tone}" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'aria-hidden="true" focusable="false">{drawn}{"".join(_foot(scale, ROW * len(rows)))}</svg>'
    )


@dataclass(frozen=True)
class _Scale:
    """The canvas positions of log ratios."""

    left: float
    right: float

    def x(self, log_ratio: float) -> float:
        share = (log_ratio - self.left) / (self.right - self.left)
        return _MARGIN + min(1.0, max(0.0, share)) * (WIDTH - 2 * _MARGIN)


def _row(groups: Groups, scale: _Scale, middle: float, name: str) -> Iterator[str]:
    _, low, high, _ = groups.ratio
    if low is not None and high is not None:
        left, right = scale.x(low), scale.x(high)
        yield f'<path class="strip-interval" d="M{left:.1f} {middle + 8:.1f}H{right:.1f}"/>'
    for number, value in enumerate(groups.log_ratios):
        y = middle + _JITTER[number % len(_JITTER)]
        yield f'<circle class="strip-{name}" cx="{scale.x(value):.1f}" cy="{y:.1f}" r="2.4"/>'


def _foot(scale: _Scale, top: float) -> Iterator[str]:
    """An axis with a round factor in three places."""
    yield f'<path class="strip-axis" d="M0 {top + 2}H{WIDTH}"/>'
    low, high = math.exp(scale.left), math.exp(scale.right)
    decimals = max(0, min(5, math.ceil(-math.log10(high - low)) + 1))
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        value = math.exp(scale.left + share * (scale.right - scale.left))
        x = _MARGIN + share * (WIDTH - 2 * _MARGIN)
        text = f"{value:.{decimals}f}" if value < _BEYOND else f"{value:.2g}"
        yield f'<text class="strip-tick" x="{x:.0f}" y="{top + 15}" text-anchor="{anchor}">{text}×</text>'
