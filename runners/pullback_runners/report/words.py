"""Numbers as text: units that fit, factors with their interval, and doubt stated. Pure."""

import math
from collections.abc import Mapping
from typing import Any

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTE_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def duration_in_words(seconds: float) -> str:
    """Three digits and the unit that keeps them readable: `209 µs`."""
    scale, unit = next((s for s in _TIME_UNITS if seconds >= s[0]), _TIME_UNITS[-1])
    return f"{_three_digits(seconds / scale)} {unit}"


def bytes_in_words(count: int) -> str:
    """Bytes exactly below a kibibyte, else to three digits: `430 KiB`."""
    for scale, unit in _BYTE_UNITS:
        if count >= scale:
            return f"{_three_digits(count / scale)} {unit}"
    return f"{count} B"


def round_bytes_in_words(count: int) -> str:
    """A round number of bytes, as on an axis: `32 KiB`."""
    scale, unit = next((each for each in _BYTE_UNITS if count >= each[0]), (1, "B"))
    return f"{count / scale:g} {unit}"


LIKELY = {"faster": "likely_faster", "slower": "likely_slower", "same": "ambiguous"}


def judged(row: Mapping[str, Any], harness: Mapping[str, Any]) -> str:
    """The outcome of a compared row as the service judges it: on a busy machine without an A/A control it is likely at most."""
    outcome: str = row["outcome"]
    is_doubtful = harness["quality"] != "clean" and row.get("margin_is_provisional", False)
    return LIKELY.get(outcome, outcome) if is_doubtful else outcome


def time_in_words(paired: Mapping[str, Any]) -> str:
    """A paired time in words: `2.4x faster (2.3-2.5)`, `same within 2 %`, `ambiguous (0.98-1.03x)`, `failed`."""
    outcome = paired["outcome"]
    if outcome == "failed":
        return "failed"
    log_ratio, low, high = paired["log_ratio"], paired["low"], paired["high"]
    if outcome == "faster":  # turned round, so that the factor says how many times as fast
        return f"{_factor(-log_ratio)}x faster ({_interval(-high, -low)})"
    if outcome == "slower":
        return f"{_factor(log_ratio)}x slower ({_interval(low, high)})"
    if outcome == "same":
        return f"same within {paired['margin']:.0%} ({_interval(low, high)}x)"
    return f"ambiguous ({_interval(low, high)}x)"


def memory_in_words(bytes_metric: Mapping[str, Any], allocs_metric: Mapping[str, Any]) -> str:
    """The count of a layer in words: `430 KiB in 22`; a layer that could not be seen is `not seen`."""
    if bytes_metric["value"] is None:
        return "not seen"
    doubt = " (varies between calls)" if bytes_metric.get("differs") or allocs_metric.get("differs") else ""
    return f"{bytes_in_words(bytes_metric['value'])} in {allocs_metric['value']}{doubt}"


def factor_in_words(paired: Mapping[str, Any]) -> str:
    """An exact metric against the baseline: `0.36x`, `equal`, or `less` where one of them is 0 and there is no factor."""
    if paired["outcome"] == "equal":
        return "equal"
    return f"{_factor(paired['log_ratio'])}x" if paired["log_ratio"] is not None else str(paired["outcome"])


def _interval(low: float, high: float) -> str:
    """Two factors, to as many decimals as it takes that they differ, up to five."""
    ends = _factor(low), _factor(high)
    for decimals in (3, 4, 5):
        if ends[0] == ends[1] and low != high:
            ends = f"{math.exp(low):.{decimals}f}", f"{math.exp(high):.{decimals}f}"
    return "-".join(ends)


def _factor(log_ratio: float) -> str:
    """A factor to three digits, but never less than two decimals: 1.05 and 12.3 and 0.036."""
    factor = math.exp(log_ratio)
    return f"{factor:.2f}" if 0.1 <= factor < 10 else _three_digits(factor)


def _three_digits(value: float) -> str:
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"
