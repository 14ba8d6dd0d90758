"""Times of a call on a device beside the wall's, which decides: the device's own, the host's, and with the device's cache cold."""

import time
from typing import NamedTuple

from pullback_runners.peers import QueuedCall

MOST_COLD_CALLS = 10
"""The most cold calls: before each, some hundred megabytes are written, which takes longer than most calls."""

Seconds = float


class CallTimes(NamedTuple):
    """Seconds that a call took."""

    device_time: Seconds | None
    """The time from its first kernel to the end of its last one, by events; None if the engine provides none."""
    host_time: Seconds
    """The time until it returned and the host was free for other work."""
    time_cold: Seconds
    """Wall time until the result was available, with the device's cache cleared of earlier calls."""


def time_beside(call: QueuedCall, calls: int) -> CallTimes:
    """Time `calls` calls, each awaited before the next, and some more with a cold cache."""
    clock = time.perf_counter
    call()
    host_s = device_s = cold_s = 0.0
    for _ in range(calls):
        first, last = (call.event(), call.event()) if call.event is not None else (None, None)
        if first is not None:
            first.record()
        began = clock()
        result = call.queue()
        host_s += clock() - began
        if last is not None:
            last.record()
        call.wait(result)
        del result
        if first is not None:
            device_s += first.elapsed_time(last) / 1e3
    cold_calls = min(calls, MOST_COLD_CALLS)
    for _ in range(cold_calls):
        call.overwrite()
        began = clock()
        call()
        cold_s += clock() - began
    return CallTimes(None if call.event is None else device_s / calls, host_s / calls, cold_s / cold_calls)
