"""A slice: one or two milliseconds of calls, the unit in which the members of a group take turns."""

import itertools
import os
import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from pullback_runners.suites import SLICE_NS

Clock = Literal["cpu", "wall"]


class Slice(NamedTuple):
    """Nanoseconds that a slice took."""

    cpu_ns: int
    wall_ns: int
    waited_ns: int | None
    """Nanoseconds that the process waited meanwhile for a CPU that others had, None where the kernel does not say."""

    def by(self, clock: Clock) -> int:
        """Nanoseconds by one of the clocks."""
        return self.cpu_ns if clock == "cpu" else self.wall_ns


def time_slice(call: Callable[[], Any], calls: int) -> Slice:
    """Time `calls` calls, after one that is not timed and warms the caches again."""
    before = _delays_ns()
    call()
    turns = itertools.repeat(None, calls)
    cpu_clock, wall_clock = time.process_time_ns, time.perf_counter_ns
    wall_before = wall_clock()
    cpu_before = cpu_clock()
    for _ in turns:
        call()
    cpu_after = cpu_clock()
    wall_after = wall_clock()
    after = _delays_ns()
    waited = None
    if before is not None and after is not None:
        # JAX's threads have the CPU of the slice too: who waits for them waits for nobody else.
        waited = max(0, (after[0] - before[0]) - max(0, after[1] - before[1]))
    return Slice(cpu_after - cpu_before, wall_after - wall_before, waited)


CALIBRATIONS = 5
"""Slices that a calibration is the fastest of: a neighbour can make one take five times its time, and none can make it shorter."""


def calibrate_calls(call: Callable[[], Any], slice_ns: int = SLICE_NS, clock: Clock = "cpu") -> float:
    """Return how many calls fill a slice, less than one if a call takes longer, by the clock that decides; of CPUs, waiting for one changes nothing."""
    calls = 1
    while True:
        took_ns = time_slice(call, calls).by(clock)
        if calls == 1 and took_ns >= 2 * slice_ns:
            return slice_ns / took_ns
        if took_ns >= slice_ns // 2:
            fastest_ns = min(took_ns, *(time_slice(call, calls).by(clock) for _ in range(CALIBRATIONS - 1)))
            if fastest_ns >= slice_ns // 2:
                return calls * slice_ns / fastest_ns
        calls *= 2


def timer_ns(clock: Clock = "cpu") -> int:
    """Nanoseconds of a slice of one call that does nothing, by the clock that decides: the median of 99."""
    return sorted(time_slice(_nothing, 1).by(clock) for _ in range(99))[49]


def _nothing() -> None:
    """Do nothing."""


def _delays_ns() -> tuple[int, int] | None:
    """Nanoseconds that this thread waited for a CPU, and that other threads of the process had of it; with several CPUs it need not wait for them."""
    waited_ns = run_delay_ns()
    if waited_ns is None:
        return None
    return waited_ns, time.process_time_ns() - time.thread_time_ns() if len(os.sched_getaffinity(0)) == 1 else 0


def run_delay_ns() -> int | None:
    """Nanoseconds this process waited for a CPU while it could run, or None where the kernel does not say."""
    try:
        schedstat = os.open("/proc/self/schedstat", os.O_RDONLY)  # read between slices: open() takes four times as long
        try:
            return int(os.read(schedstat, 100).split()[1])
        finally:
            os.close(schedstat)
    except (OSError, IndexError, ValueError):
        return None
