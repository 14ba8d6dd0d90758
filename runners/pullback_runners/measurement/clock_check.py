"""The times that a worker states, compared with the coordinator's clock: code that is measured can change every clock of its process.

A turn takes the coordinator the calls that are timed, one that is not, and the way of the order and its answer, which makes it
longer and never shorter. A process that states less than that is asked for the fastest quarter of its turns, without what either
process waited for a CPU, as the kernel counts it. The worker states its own waiting: one that states much was measured on a busy
machine, as the report says. A process that states more is asked for whole turns: the coordinator may wait while the worker runs.
"""

from collections.abc import Mapping, Sequence

from pullback_runners.machine.quality import MOST_WAITING
from pullback_runners.measurement.call_times import MOST_COLD_CALLS
from pullback_runners.measurement.statistics import interquartile_mean

LEAST_SHARE = 0.5
"""Share of a turn that has to be stated. Of a slice of 2 ms the way of the order takes a twentieth, and a call that finds its caches
empty two or three times as long as others."""

LEAST_SHARE_OF_BUSY = 0.2
"""The same where processes waited for their CPU for more than `MOST_WAITING` of the time: what ran meanwhile took the caches, and
their filling takes 1 to 2 ms of a turn of 4 ms (six processes on two CPUs: the fastest quarter took 1.0 to 2.01 times what was stated)."""

FEWEST_TURNS = 8
"""With fewer turns the fastest quarter is one or two, which a busy machine can prolong arbitrarily."""

MOST_SHARE = 1.1
"""The kernel counts CPU time by ticks in some places, which are off by some per cent."""


def clock_complaint(
    stated_s: Sequence[float],
    calls: int,
    turns_s: Sequence[float],
    delays_s: Sequence[float],
    cpus: int = 1,
    waiting: float = 0.0,
) -> str | None:
    """The reason why seconds a call that a process stated cannot be, by the seconds that its turns took; None if they can.

    In each turn the two processes waited for a CPU for so many seconds of `delays_s`, which may overlap. On `cpus` CPUs it can have spent so many times as long. `waiting` is the share of the time that it waited for a CPU.
    """
    if len(turns_s) < FEWEST_TURNS:
        return None
    said = interquartile_mean(stated_s)
    undelayed_s = [max(turn - delay, 0.0) for turn, delay in zip(turns_s, delays_s, strict=True)]
    taken = sorted(undelayed_s)[(len(turns_s) - 1) // 4] / (calls + 1)
    if said < (LEAST_SHARE_OF_BUSY if waiting > MOST_WAITING else LEAST_SHARE) * taken:
        return f"it stated {said:.3g} s a call where the coordinator's clock says {taken:.3g}: it waits for something, or its clock is wrong"
    if sum(stated_s) * calls > MOST_SHARE * cpus * sum(turns_s):
        return (
            f"it stated {sum(stated_s) * calls:.3g} s in turns that took {sum(turns_s):.3g} s by the coordinator's clock: "
            "its clock is wrong"
        )
    return None


def complaint_beside(
    beside: Mapping[str, Sequence[float]], calls: int, orders_s: float, walls_s: Sequence[float]
) -> str | None:
    """The reason why the other times of a call on a device cannot be; None if they can.

    They were stated a stretch each, in answers that took `orders_s` together by the coordinator's clock; calls took `walls_s`, slice by slice.
    What a call takes on the host and on the device may be a small part of it, but none of them ends after the answer, and no call is
    sooner done because the device's cache was cleared.
    """
    queued_s = calls * max(sum(beside.get("host_time", ())), sum(beside.get("device_time", ())))
    cold = beside.get("time_cold", ())
    stated_s = queued_s + min(calls, MOST_COLD_CALLS) * sum(cold)
    if stated_s > MOST_SHARE * orders_s:
        return (
            f"it stated {stated_s:.3g} s of calls in answers that took {orders_s:.3g} s by the coordinator's clock: "
            "its clock is wrong"
        )
    if not cold or len(walls_s) < FEWEST_TURNS:
        return None
    said, warm = interquartile_mean(cold), interquartile_mean(walls_s)
    if said < LEAST_SHARE * warm:
        return f"it stated {said:.3g} s a call with a cold cache and {warm:.3g} s with a warm one: its clock is wrong"
    return None
