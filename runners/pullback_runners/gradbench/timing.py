"""Runs of a function as a message requests: a minimum number of times, for a minimum duration."""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any


def timed(name: str, call: Callable[[], Any]) -> tuple[Any, list[dict[str, Any]]]:
    """Call once; return the result and its timing."""
    start = perf_counter_ns()
    result = call()
    return result, [{"name": name, "nanoseconds": perf_counter_ns() - start}]


def repeated(call: Callable[[], Any], min_runs: int, min_seconds: float) -> tuple[Any, list[dict[str, Any]]]:
    """Call until there were `min_runs` runs that took `min_seconds` in all; return the last result and all timings."""
    durations: list[int] = []
    elapsed, enough, clock = 0, min_seconds * 1e9, perf_counter_ns
    result = None
    while len(durations) < min_runs or elapsed < enough:
        result = None  # whose memory the next one may have
        start = clock()
        result = call()
        duration = clock() - start
        durations.append(duration)
        elapsed += duration
    return result, [{"name": "evaluate", "nanoseconds": duration} for duration in durations]
