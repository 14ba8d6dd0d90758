"""What the numbers allow to say. Pure; the rule is the same for the report, the terminal and the service."""

import math
from typing import Literal

from pullback_runners.measurement.statistics import RatioEstimate

NoisyOutcome = Literal["faster", "slower", "same", "ambiguous"]
ExactOutcome = Literal["less", "more", "equal"]

LEAST_MARGIN = 0.01
"""No claim is made about less than 1 %."""

PROVISIONAL_FLOOR = 0.02
"""Stands for the machine's own A/A floor until it has 20 A/A groups of the workload."""


def margin(floor: float = PROVISIONAL_FLOOR) -> float:
    """Smallest |log ratio| that counts as a difference, given the machine's A/A floor for the workload."""
    return max(LEAST_MARGIN, floor)


def noisy_outcome(estimate: RatioEstimate, margin: float, *, may_say_same: bool) -> NoisyOutcome:
    """Faster or slower if the interval excludes 0 and the ratio reaches the margin; same if it lies inside the margin.

    A quick run has too few groups to show that nothing changed, so it never says same.
    """
    if may_say_same and -margin < estimate.low and estimate.high < margin:
        return "same"
    if (estimate.low > 0 or estimate.high < 0) and abs(estimate.log_ratio) >= margin:
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
