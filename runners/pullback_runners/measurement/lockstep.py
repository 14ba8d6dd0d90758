"""A group: one process for every member of a case, all alive on one CPU, taking turns in short slices.

What a neighbour on the machine does to one slice it does to the next one too, so the ratio of two slices side by side says
what two separate runs cannot. Every group is new processes, since hash seed and memory layout change speed by percents; the
processes of one group are forked from one, so that its draw of both is the same for all of them.
"""

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback_runners.errors import VariantError
from pullback_runners.machine.nvml import Clocks
from pullback_runners.measurement.affinity import allowed_cpus
from pullback_runners.measurement.answer_forms import is_beside, is_turn, is_warm
from pullback_runners.measurement.clock_check import clock_complaint, complaint_beside
from pullback_runners.measurement.clocks import clock_of
from pullback_runners.measurement.device import MeasuredDevice
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.slices import run_delay_ns
from pullback_runners.measurement.worker_process import (
    StoppedError,
    WorkerProcess,
    WorkerSettings,
)
from pullback_runners.measurement.zygote_process import Zygotes
from pullback_runners.workloads import Case

MOST_REPEATS = 10
"""A slice is repeated so often while the device is throttled, then kept and marked. In that process further ones are kept at once: a
device that stays throttled for longer would make all slices ten times as long."""


@dataclass
class Timing:
    """The measurement of one process: seconds a call, slice by slice."""

    calls: int
    """Calls in each slice."""
    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    waited_s: list[float | None] = field(default_factory=list)
    """Time for which the process waited for a CPU in each slice, None where the kernel does not say."""
    timer_s: float = 0.0
    """Time of an empty slice by the same clocks: the part of every slice that is not the program's."""
    turn_s: list[float] = field(default_factory=list)
    """Seconds that each turn took by the coordinator's clock."""
    delay_s: list[float] = field(default_factory=list)
    """Seconds that the process and the coordinator waited for a CPU in each turn, counted twice where both did at once."""
    late_s: list[float] = field(default_factory=list)
    """Seconds that the process waited for a CPU before each turn."""
    throttled: list[int] = field(default_factory=list)
    """Numbers of the slices in which the device was throttled, however often they were repeated."""
    clocks: list[Clocks] = field(default_factory=list)
    """Clocks of the device before and after each slice."""
    beside: dict[str, list[float]] = field(default_factory=dict)
    """The other times of a call on a device by their metric, once a stretch."""
    beside_s: float = 0.0
    """Seconds that these took together by the coordinator's clock."""
    repeats: int = MOST_REPEATS
    """The most repeats of a throttled slice; none once that did not help."""

    def waiting(self) -> tuple[float, float]:
        """Seconds that the process waited for a CPU in slices and before them, and those that it ran in them."""
        return sum(filter(None, self.waited_s)) + sum(self.late_s), sum(self.cpu_s) * self.calls

    def disturbed(self) -> list[int]:
        """Numbers of the slices in which the process waited for a CPU."""
        return [
            number
            for number, (waited_s, cpu_s) in enumerate(zip(self.waited_s, self.cpu_s, strict=True))
            if waited_s is not None and waited_s > MOST_WAITING_A_SLICE * (waited_s + cpu_s * self.calls)
        ]


MOST_WAITING_A_SLICE = 0.05
"""Slices whose process waited for a longer share of their time are left out of ratios: what ran meanwhile took the caches."""

LEAST_LEFT = 0.5
"""The least share of rounds that is left; with fewer none is left out: the middle half of them all says more than a few."""


def paired_slices(case: Case, timings: Sequence[Timing]) -> list[list[float]]:
    """The slices of these processes by the clock that decides for this case, in the rounds in which none of them waited for its CPU."""
    by_clock = [timing.cpu_s if clock_of(case) == "cpu" else timing.wall_s for timing in timings]
    rounds = range(min(map(len, by_clock), default=0))
    disturbed = {number for timing in timings for number in timing.disturbed()}
    undisturbed = [number for number in rounds if number not in disturbed]
    remaining = undisturbed if len(undisturbed) >= LEAST_LEFT * len(rounds) else rounds
    return [[slices[number] for number in remaining] for slices in by_clock]


@dataclass
class Group:
    """Timings by member, every one with the same number of slices; failures by member."""

    timings: dict[str, Timing]
    failures: dict[str, VariantError]

    def rounds(self) -> int:
        """The number of turns of each member that did not fail; 0 if all did."""
        return min((len(timing.cpu_s) for timing in self.timings.values()), default=0)


ROUNDS_A_STRETCH = 5
"""After so many turns of each the processes of a group are renewed, see `renewing`. A ratio of stretches varies by 2.1 % from
fork to fork and by 2.7 % from slice to slice, and a fork costs as much as three slices: least is lost with 3 to 6."""

FEWEST_ROUNDS = 20
"""A group whose time is up ends after so many turns of each, of which the middle half still says something."""

LIKE_ENOUGH = 2.5
"""Members whose calls take times that differ by less than this factor make equally many calls a slice."""


class GroupProcesses:
    """The processes of a group, forked in random order; imports take longer than measuring.

    Until their turns begin they keep off the CPU that is measured on, as the coordinator does (`off_the_measured_cpu`), so
    that the next lineup may start while a group takes its turns.
    """

    def __init__(self, case: Case, members: Sequence[Member], settings: WorkerSettings) -> None:
        self.case = case
        self.members = list(members)
        self.settings = settings
        self.start_order = [member.name for member in settings.rng.sample(self.members, len(self.members))]
        by_name = {member.name: member for member in self.members}
        self._zygote: Zygotes | None = Zygotes(case, [by_name[name] for name in self.start_order], settings)
        self.workers: dict[str, WorkerProcess] = self._zygote.workers

    def is_ready(self) -> bool:
        """True once all processes are ready for their turns, or have failed."""
        return all(worker.has_answer() for worker in self.workers.values())

    def start_on(self, cpus: Collection[int]) -> None:
        """Let processes that start use these CPUs; for their turns they are pinned."""
        if self._zygote is not None:
            self._zygote.use(cpus)

    def end(self) -> None:
        """End all processes."""
        if self._zygote is not None:
            self._zygote.end()
        self._zygote, self.workers = None, {}


def run_group(
    lineup: GroupProcesses,
    slices: int,
    most_s: float | None = None,
    deadline: float | None = None,
    start_following: Callable[[], GroupProcesses | None] = lambda: None,
) -> Group:
    """Run one group and end its processes. A member that fails leaves it, the others go on; stopping raises StoppedError.

    Processes are pinned and warmed one by one. A case with several threads, or on a GPU, is pinned to no CPU. The following lineup is
    started when the turns begin: sooner, it would take CPUs from this one. With `most_s` turns end so
    long after this call, after `FEWEST_ROUNDS` of each, or when the following lineup is ready, whichever is latest; at
    `deadline`, by the monotonic clock, they end after one of each at the latest.
    """
    until = None if most_s is None else time.monotonic() + most_s
    order, workers = lineup.start_order, lineup.workers
    cpus, device = _turn_cpus(lineup), lineup.settings.device
    failures: dict[str, VariantError] = {}
    timings: dict[str, Timing] = {}
    filling: dict[str, float] = {}
    try:
        for name in _alive(order, failures):
            with _noting(failures, name):
                workers[name].answer()
        for name in _alive(order, failures):
            with _noting(failures, name):
                warm = workers[name].ask({"do": "warm", "cpus": cpus}, is_warm)
                timings[name], filling[name] = Timing(1, timer_s=warm["timer_ns"] / 1e9), warm["filling"]
        for name, calls in calls_a_slice(filling, [member.name for member in lineup.members]).items():
            timings[name].calls = calls
        following = start_following()
        for number, turn_order in enumerate(_rotations(order, slices)):
            if lineup.settings.stop():
                raise StoppedError
            if _is_over(number, until, deadline, following):
                break
            if number % ROUNDS_A_STRETCH == 0:
                _begin_stretch(order, workers, timings, failures, device)
            for name in _alive(turn_order, failures):
                with _noting(failures, name):
                    _take_turn(workers[name], timings[name], device)
        _end_turns(lineup, timings, failures, len(cpus) or os.cpu_count() or 1)
        _go_on_starting(following, cpus)
    finally:
        lineup.end()
    if failures and device is not None:
        device.refuse_lost()  # which is nobody's failure
    return Group({m.name: timings[m.name] for m in lineup.members if m.name not in failures}, failures)


def _go_on_starting(following: GroupProcesses | None, cpus: Collection[int]) -> None:
    """Let the following lineup start on the measured CPU too: nothing takes turns until it has started."""
    if following is not None:
        following.start_on(allowed_cpus().union(cpus))


def _end_turns(
    lineup: GroupProcesses, timings: Mapping[str, Timing], failures: dict[str, VariantError], cpus: int
) -> None:
    """Check all once more: what each computes, the times that it stated, and who else is on the device."""
    if lineup.settings.device is not None:
        lineup.settings.device.record_other_processes("between", beside_ours=True)
    for name in _alive(lineup.start_order, failures):
        with _noting(failures, name):
            lineup.workers[name].ask({"do": "end"})
            lineup.workers[name].check_last_outside()
            _refuse_wrong_clock(lineup.case, timings[name], cpus)


def _is_over(rounds: int, until: float | None, deadline: float | None, following: GroupProcesses | None) -> bool:
    now = time.monotonic()
    if deadline is not None and rounds > 0 and now >= deadline:
        return True
    enough = until is not None and rounds >= FEWEST_ROUNDS and now >= until
    return enough and (following is None or following.is_ready())


def _take_turn(worker: WorkerProcess, timing: Timing, device: MeasuredDevice | None) -> None:
    if device is None:
        _note_turn(timing, *_turn(worker, timing))
        return
    for left in range(timing.repeats, -1, -1):
        before, turn, after = device.clocks(), _turn(worker, timing), device.clocks()
        throttled = bool(before.throttled or after.throttled)
        if not throttled:
            break
        if left == 0:
            timing.throttled.append(len(timing.wall_s))
            timing.repeats = 0
    timing.clocks += [before, after]
    _note_turn(timing, *turn)


def _turn(worker: WorkerProcess, timing: Timing) -> tuple[dict[str, Any], float, int | None]:
    """The answer of a worker to a turn, the seconds that it took, and the nanoseconds that this process waited for a CPU."""
    began, waited_ns = time.perf_counter(), run_delay_ns()
    taken = worker.ask({"do": "turn", "calls": timing.calls}, is_turn)
    turn_s, own_ns = time.perf_counter() - began, run_delay_ns()
    return taken, turn_s, None if waited_ns is None or own_ns is None else own_ns - waited_ns


def _note_turn(timing: Timing, taken: Mapping[str, Any], turn_s: float, waited_ns: int | None) -> None:
    if waited_ns is not None:
        timing.turn_s.append(turn_s)
        timing.delay_s.append((waited_ns + (taken["waited_ns"] or 0) + (taken["late_ns"] or 0)) / 1e9)
        timing.late_s.append((taken["late_ns"] or 0) / 1e9)
    timing.cpu_s.append(taken["cpu_ns"] / 1e9 / timing.calls)
    timing.wall_s.append(taken["wall_ns"] / 1e9 / timing.calls)
    timing.waited_s.append(None if taken["waited_ns"] is None else taken["waited_ns"] / 1e9)


def _refuse_wrong_clock(case: Case, timing: Timing, cpus: int) -> None:
    stated_s = timing.cpu_s if clock_of(case) == "cpu" else timing.wall_s
    waited_s, ran_s = timing.waiting()
    waiting = waited_s / (waited_s + ran_s) if waited_s > 0 else 0.0
    complaint = clock_complaint(stated_s, timing.calls, timing.turn_s, timing.delay_s, cpus, waiting)
    if complaint is None and timing.beside:
        complaint = complaint_beside(timing.beside, timing.calls, timing.beside_s, timing.wall_s)
    if complaint is not None:
        raise VariantError("doubtful", complaint)


def _begin_stretch(
    order: Sequence[str],
    workers: Mapping[str, WorkerProcess],
    timings: Mapping[str, Timing],
    failures: dict[str, VariantError],
    device: MeasuredDevice | None,
) -> None:
    """Let a stretch of turns begin: on the CPU in new forks, on a device with its other times."""
    if device is None:
        _renew(order, workers, failures)
        return
    for name in _alive(order, failures):
        with _noting(failures, name):
            _time_beside(workers[name], timings[name])


def _time_beside(worker: WorkerProcess, timing: Timing) -> None:
    began = time.perf_counter()
    beside = worker.ask({"do": "beside", "calls": timing.calls}, is_beside)["beside"]
    timing.beside_s += time.perf_counter() - began
    for metric, value in beside.items():
        if value is not None:
            timing.beside.setdefault(metric, []).append(value)


def _renew(
    order: Sequence[str],
    workers: Mapping[str, WorkerProcess],
    failures: dict[str, VariantError],
) -> None:
    """Let a stretch of turns begin, in new forks where that can be; side by side, since on a busy machine they mostly wait.

    The forks after these are made where this process runs.
    """
    apart = allowed_cpus()
    for name in _alive(order, failures):
        with _noting(failures, name):
            workers[name].order({"do": "renew", "apart": sorted(apart)})
    for name in _alive(order, failures):
        with _noting(failures, name):
            workers[name].answer()


def calls_a_slice(filling: Mapping[str, float], names: Sequence[str]) -> dict[str, int]:
    """Calls that each member makes in a slice: equally many for all that are about as fast as the first of `names` that is alive.

    `filling` is how many calls of each fill a slice, a fraction where one call takes longer. The first calls of a slice find
    caches that are still cold, so time per call falls with the number of calls: ten calls and twenty of one program differ by
    6 % on small arrays, one and two by more. Calibrations differ by as much, and those of three processes of JAX that started
    side by side by a factor of up to 2.4.
    """
    first = next((filling[name] for name in names if name in filling), 0.0)
    alike = {name: each for name, each in filling.items() if first / LIKE_ENOUGH < each < first * LIKE_ENOUGH}
    shared = {name: statistics.median(alike.values()) for name in alike}
    return {name: max(1, round(calls)) for name, calls in {**filling, **shared}.items()}


def _turn_cpus(lineup: GroupProcesses) -> list[int]:
    """The CPUs that turns are taken on: the measured one; all of them for several threads or a GPU's driver. Empty where none can be chosen."""
    cpu, allowed = lineup.settings.cpu, allowed_cpus()
    if cpu is None or not allowed:
        return []
    return [cpu] if clock_of(lineup.case) == "cpu" else sorted(allowed | {cpu})


def _rotations(order: Sequence[str], rounds: int) -> Iterable[list[str]]:
    """Orders of turns, one a round, each starting one place later: of two members that is ABBA, so drift cancels."""
    for turn in range(rounds):
        first = turn % len(order)
        yield [*order[first:], *order[:first]]


def _alive(order: Iterable[str], failures: dict[str, VariantError]) -> list[str]:
    return [name for name in order if name not in failures]


@contextlib.contextmanager
def _noting(failures: dict[str, VariantError], name: str) -> Iterator[None]:
    """Note a member's failure instead of raising it."""
    try:
        yield
    except VariantError as error:
        failures[name] = error
