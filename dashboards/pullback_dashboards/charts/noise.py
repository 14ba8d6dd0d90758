"""The noise floor of a machine day by day, as static SVG of a few hundred bytes.

Bars stand on zero and the scale holds at least 2 %, the floor that is assumed of unknown machines: a quiet machine looks
quiet. A day with too few groups for a floor of its own is hollow. Days are drawn side by side; the newest is on the right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 120, 26
MOST_DAYS = 30
_LEAST_TOP = 0.02


@dataclass(frozen=True)
class Floor:
    """One day: the 95th percentile of |log ratio| of its groups, or what is assumed where they are too few."""

    day: str
    floor: float
    provisional: bool = False


def noise(days: Sequence[Floor]) -> str:
    """The SVG element, styled by the page through the classes it carries. Empty without any day."""
    visible_days = days[-MOST_DAYS:]
    if not visible_days:
        return ""
    return (
        f'<svg class="noise" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'aria-hidden="true" focusable="false">{"".join(_marks(visible_days))}</svg>'
    )


def _marks(days: Sequence[Floor]) -> Iterator[str]:
    top = max(_LEAST_TOP, *(day.floor for day in days)) * 1.05
    step = WIDTH / MOST_DAYS
    left = WIDTH - step * len(days)
    y = HEIGHT - 1 - _LEAST_TOP / top * (HEIGHT - 2)
    yield f'<path class="noise-assumed" d="M0 {y:.1f}H{WIDTH}"/>'
    for place, day in enumerate(days):
        height = max(1.0, day.floor / top * (HEIGHT - 2))
        look = "noise-day noise-few" if day.provisional else "noise-day"
        yield (
            f'<rect class="{look}" x="{left + place * step + 0.5:.1f}" y="{HEIGHT - 1 - height:.1f}" '
            f'width="{step - 1:.1f}" height="{height:.1f}"/>'
        )
    yield f'<path class="noise-foot" d="M0 {HEIGHT - 0.5}H{WIDTH}"/>'
