"""Calls that take turns in one process, in short slices of process CPU time.

On a busy machine a ratio of neighbouring slices holds where an absolute time does not: so every ratio is taken slice by
slice, and its median is given with the 95 % interval that order statistics give, whatever the distribution.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Call = Callable[[], Any]

#: A slice lasts at least this long, or one call.
SLICE_S = 0.002

#: Rounds of one comparison: fewer say nothing, more add little.
LEAST_ROUNDS = 5
MOST_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Median:
    """The median of a sample, and an interval that holds the true one in 95 of 100 cases."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, sample: Sequence[float]) -> "Median":
        """Ranks n / 2 -+ 0.98 sqrt(n), the normal limit of the binomial distribution; the whole range of small samples."""
        ordered, n = sorted(sample), len(sample)
        reach = 0.98 * math.sqrt(n)
        low, high = max(0, math.floor(n / 2 - reach)), min(n - 1, math.ceil(n / 2 + reach))
        return cls(statistics.median(ordered), ordered[low], ordered[high])


def take_turns(calls: Mapping[str, Call], *, budget_s: float) -> dict[str, list[float]]:
    """Seconds per call of each, slice by slice; the order of turns rotates from round to round."""
    repeats = {name: _calls_per_slice(call) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    end = time.monotonic() + budget_s
    for round_ in range(MOST_ROUNDS):
        if round_ >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for name in order:
            call, times = calls[name], range(repeats[name])
            start = time.process_time()
            for _ in times:
                call()
            seconds[name].append((time.process_time() - start) / repeats[name])
        order.append(order.pop(0))
    return seconds


def ratio(own: Sequence[float], base: Sequence[float]) -> Median:
    """The ratio of a call's time to that of the base, slice by slice."""
    return Median.of([mine / other for mine, other in zip(own, base, strict=True)])


def _calls_per_slice(call: Call) -> int:
    call()
    call()
    start = time.process_time()
    call()
    return max(1, int(SLICE_S / max(time.process_time() - start, 1e-6)))
