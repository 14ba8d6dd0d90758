"""The rule of outcomes. Pure; the same for the report, the terminal and the service."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pullback_runners.measurement.statistics import RatioEstimate

NoisyOutcome = Literal["faster", "slower", "same", "ambiguous"]
ExactOutcome = Literal["less", "more", "equal"]

LEAST_MARGIN = 0.01
"""Programs that differ by less than 1 % are the same."""

LEAST_CLAIM = 0.005
"""Nothing is called faster or slower by less than 0.5 %. Half of the margin: a true difference of 1 % is measured as less
than 1 % every second time, and is to be found all the same."""

PROVISIONAL_FLOOR = 0.02
"""Stands for the A/A floor of the machine while there are too few groups with a twin to know it; it never makes a `same`."""

BUSY_FLOOR = 0.14
"""Stands for that floor on a busy machine, by the root of the number of groups: 10 % by two, 6 % by five, 4 % by eleven.
Beside six to sixteen busy processes on two CPUs the middle of so few came further from zero less than once in 100 times. A
comparison has a row for each case and variant, so that once in 20 would accuse every third run of equal code."""


@dataclass(frozen=True)
class Margins:
    """The limits of a claim: the smallest difference that may be claimed, and the largest that counts as none."""

    claim: float
    """Smallest |log ratio| that is called faster or slower."""
    same: float
    """Largest |log ratio| that is called the same."""
    is_provisional: bool


def margins(floor: float | None = None, *, busy_groups: int | None = None) -> Margins:
    """The margins, given the A/A floor: how far from zero two identical programs come in as many groups, 19 times of 20.

    `busy_groups` is the number of groups that were measured on a busy machine, None of a quiet one.
    """
    unmeasured = PROVISIONAL_FLOOR
    if busy_groups is not None:
        unmeasured = max(unmeasured, BUSY_FLOOR / math.sqrt(busy_groups))
    known = unmeasured if floor is None else floor
    return Margins(max(LEAST_CLAIM, known), max(LEAST_MARGIN, known), is_provisional=floor is None)


def noisy_outcome(estimate: RatioEstimate, margins: Margins, *, may_say_same: bool) -> NoisyOutcome:
    """Faster or slower if the interval excludes 0 and the ratio reaches the claim; same if it lies inside the margin.

    A quick run has too few groups to show that nothing changed, so it never says same; nor does a provisional floor.
    """
    if may_say_same and not margins.is_provisional and -margins.same < estimate.low and estimate.high < margins.same:
        return "same"
    if (estimate.low > 0 or estimate.high < 0) and abs(estimate.log_ratio) >= margins.claim:
        return "faster" if estimate.log_ratio < 0 else "slower"
    return "ambiguous"


def exact_outcome(variant: int, baseline: int) -> ExactOutcome:
    """Counts have no noise: any difference is one."""
    if variant == baseline:
        return "equal"
    return "less" if variant < baseline else "more"


def exact_log_ratio(variant: int, baseline: int) -> float | None:
    """ln(variant / baseline), or None where one of them is 0 and there is no ratio."""
    return math.log(variant / baseline) if variant > 0 and baseline > 0 else None


def are_apart(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> bool:
    """True if all calls of all our processes counted more, or all less, than all of theirs did."""
    low, high = _range(ours)
    least, most = _range(theirs)
    return low > most or high < least


def _range(counts: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The least and the most that a call counted; anything, where calls differ and it is not told by how much."""
    ends = []
    for count in counts:
        unknown = (-math.inf, math.inf) if count.get("differs") else (count["value"], count["value"])
        ends.append(count.get("range", unknown))
    return min(low for low, _ in ends), max(high for _, high in ends)
