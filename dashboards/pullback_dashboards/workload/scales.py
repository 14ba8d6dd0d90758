"""The scale of a plot. Pure."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Literal

Scale = Literal["auto", "linear", "log"]
_APART = 10
"""The factor by which one curve may lie above another before the lower one is flat on the ground of a linear axis."""


def is_log(scale: Scale, curves: Iterable[Sequence[float]]) -> bool:
    """True if the axis of these curves is logarithmic: as it is asked for, or else where that shows more of them.

    Zero and less have no place on such an axis: a plot that has them stays linear unless it is asked for, and one that has
    nothing else stays linear always.
    """
    drawn = [curve for curve in curves if curve]
    if scale != "auto":
        return scale == "log" and (not drawn or any(height > 0 for curve in drawn for height in curve))
    if not drawn or any(height <= 0 for curve in drawn for height in curve):
        return False
    middles = [median(curve) for curve in drawn]
    return min(middles) < max(middles) / _APART
