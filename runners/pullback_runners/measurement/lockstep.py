"""A group: one fresh process for every variant of a case, all alive on one CPU, taking turns in short slices.

What a neighbour on the machine does to one slice it does to the next one too, so the ratio of two slices side by side says
what two separate runs cannot. Every group is new processes, since hash seed and memory layout change speed by percents.
"""

import contextlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pullback_runners.errors import VariantError
from pullback_runners.measurement.worker_process import StoppedError, Surroundings, WorkerProcess
from pullback_runners.workloads import Case


@dataclass
class Timing:
    """What one process measured: seconds a call, slice by slice."""

    calls: int
    """Calls in each slice."""
    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    run_delay_s: float | None = None
    """How long the process waited for its CPU from the first turn to the last."""


@dataclass
class Group:
    """Timings by variant, every one with the same number of slices; failures by variant."""

    timings: dict[str, Timing]
    failures: dict[str, VariantError]


def run_group(
    case: Case,
    variants: Sequence[str],
    *,
    slices: int,
    cpu: int | None,
    surroundings: Surroundings,
    rng: random.Random,
) -> Group:
    """Run one group. A variant that fails leaves it, the others go on; stopping raises StoppedError.

    Processes start side by side, since imports take longer than measuring; they are pinned and warmed one by one.
    """
    start_order = list(variants)
    rng.shuffle(start_order)
    failures: dict[str, VariantError] = {}
    members: dict[str, WorkerProcess] = {}
    try:
        for variant in start_order:
            members[variant] = WorkerProcess("time", case, variant, surroundings, rng)
        for variant in _alive(start_order, failures):
            with _noting(failures, variant):
                members[variant].answer()
        timings: dict[str, Timing] = {}
        delays_before: dict[str, int | None] = {}
        for variant in _alive(start_order, failures):
            with _noting(failures, variant):
                warm = members[variant].ask({"do": "warm", "cpu": cpu})
                timings[variant] = Timing(warm["calls"])
                delays_before[variant] = warm["run_delay_ns"]
        for turn_order in _rotations(start_order, slices):
            if surroundings.stop():
                raise StoppedError
            for variant in _alive(turn_order, failures):
                with _noting(failures, variant):
                    timing = timings[variant]
                    taken = members[variant].ask({"do": "turn", "calls": timing.calls})
                    timing.cpu_s.append(taken["cpu_ns"] / 1e9 / timing.calls)
                    timing.wall_s.append(taken["wall_ns"] / 1e9 / timing.calls)
        for variant in _alive(start_order, failures):
            with _noting(failures, variant):
                after, before = members[variant].ask({"do": "end"})["run_delay_ns"], delays_before[variant]
                if after is not None and before is not None:
                    timings[variant].run_delay_s = (after - before) / 1e9
    finally:
        for member in members.values():
            member.end()
    return Group({variant: timings[variant] for variant in _alive(variants, failures)}, failures)


def _rotations(order: Sequence[str], rounds: int) -> Iterable[list[str]]:
    """Orders of turns, one a round, each starting one place later: of two members that is ABBA, so drift cancels."""
    for turn in range(rounds):
        first = turn % len(order)
        yield [*order[first:], *order[:first]]


def _alive(order: Iterable[str], failures: dict[str, VariantError]) -> list[str]:
    return [variant for variant in order if variant not in failures]


@contextlib.contextmanager
def _noting(failures: dict[str, VariantError], variant: str) -> Iterator[None]:
    """Note a variant's failure instead of raising it."""
    try:
        yield
    except VariantError as error:
        failures[variant] = error
