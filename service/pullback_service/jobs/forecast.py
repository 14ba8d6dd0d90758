"""Forecasts of the queue: when waiting jobs begin, how long they take, and why they wait. Pure: queue and machines in, words out.

The queue is played through: whenever a machine is free it takes the first job that it may have, in the order of a claim (projects
take turns), and has it for as long as earlier jobs of the same suite took there. Where one of these is not known nothing is said: a machine
with an unknown end takes no further part, and what only it could do has no time. What is said is a forecast all the same:
fresh jobs with a higher priority go first.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from types import MappingProxyType
from typing import Any, Literal

from pullback_service.jobs.labels import contains_strangers, suits, with_device

Work = tuple[int, str, str]
"""Project, suite and kind of a job: jobs that have these in common take about the same time on one machine."""
_UNKNOWN_S = 60.0
"""The time that a job is taken to last when turns are counted and its like was not done there."""
Reason = Literal["approval", "nobody", "refused", "silent", "labels", "trust", "pause", "turn"]


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job in the queue."""

    id: int
    work: Work
    requires: Mapping[str, Any]
    machine_id: int | None = None
    trusted: bool = True
    approved: bool = True
    pauses_s: float = 0.0
    """The time that is left until an agent may have it."""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class QueueMachine:
    """A machine as the queue sees it: what its agents offer, and when it is free."""

    machine_id: int
    name: str
    offers: tuple[Mapping[str, Any], ...] = ()
    """Labels of the agents that are here and take jobs."""
    away: tuple[Mapping[str, Any], ...] = ()
    """Labels of those that are silent."""
    accepts_untrusted: bool = False
    free_in_s: float | None = 0.0
    """None: at work, nobody knows for how long."""
    refusal: str | None = None
    """The reason why an agent that is online takes no jobs."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast of a waiting job. `ahead` counts the jobs before it that its machines may be given."""

    reason: Reason
    why: str
    ahead: int = 0
    starts_in_s: float | None = None
    takes_s: float | None = None
    machine: str | None = None


def remaining_s(*, elapsed_s: float, takes_s: float | None, done: int = 0, total: int = 0) -> float | None:
    """The remaining time of a running job: from the times of its like, and where those are exceeded from its own progress."""
    if takes_s is not None and elapsed_s < takes_s:
        return takes_s - elapsed_s
    if 0 < done <= total:
        return elapsed_s * (total - done) / done
    return None


def forecast(
    queue: Sequence[WaitingJob],
    benches: Sequence[QueueMachine],
    durations: Mapping[tuple[int, Work], float],
    used_s: Mapping[tuple[int, int], float] = MappingProxyType({}),
) -> dict[int, Forecast]:
    """A forecast for every job of a queue, which comes in the order of priority, attempts and age; the next to be taken is first.

    Behind those whose start is known are those with an unknown one, and behind these what no agent can take.

    `used_s` are the seconds that each machine worked lately for each project.
    """
    takers = _takers(queue, benches)
    waiting = [(job, _why(job, benches, takers[job.id])) for job in queue]
    fitting: dict[int, list[WaitingJob]] = {bench.machine_id: [] for bench in benches}
    for job, kept in waiting:
        for machine_id in takers[job.id] if kept is None else ():
            fitting[machine_id].append(job)
    fitting = {machine_id: [*_by_turns(machine_id, jobs, durations, used_s)] for machine_id, jobs in fitting.items()}
    planned = _play(benches, fitting, durations)
    names = {bench.machine_id: bench.name for bench in benches}
    places = {machine_id: {job.id: place for place, job in enumerate(jobs)} for machine_id, jobs in fitting.items()}
    forecasts: dict[int, Forecast] = {}
    for job, kept in waiting:
        if kept is not None:
            forecasts[job.id] = kept
            continue
        mine = takers[job.id]
        ahead = max(places[machine_id][job.id] for machine_id in mine)
        starts_in_s, place = _expected(job, mine, planned)
        takes_s = None if place is None else durations.get((place, job.work))
        machine = None if place is None else names[place]
        forecasts[job.id] = Forecast("turn", _turn(ahead, starts_in_s), ahead, starts_in_s, takes_s, machine)
    return dict(sorted(forecasts.items(), key=lambda each: _when(each[1])))


def _when(expected: Forecast) -> tuple[float, bool, int]:
    """The place of a job among others: by its start, then by how many are before it."""
    return inf if expected.starts_in_s is None else expected.starts_in_s, expected.reason != "turn", expected.ahead


def _expected(
    job: WaitingJob, mine: Sequence[int], planned: Mapping[int, tuple[float, int]]
) -> tuple[float | None, int | None]:
    """The start of a job and its machine; without a time the machine is known where there is only one."""
    if job.id in planned:
        return planned[job.id]
    return None, mine[0] if len(mine) == 1 else None


def may_take(job: WaitingJob, bench: QueueMachine) -> bool:
    """True if an agent that is connected would be given a job."""
    return (
        job.machine_id in {None, bench.machine_id}
        and (job.trusted or bench.accepts_untrusted)
        and any(suits(labels, job.requires) and (job.trusted or contains_strangers(labels)) for labels in bench.offers)
    )


def _takers(queue: Sequence[WaitingJob], benches: Sequence[QueueMachine]) -> Mapping[int, Sequence[int]]:
    """The machines that would be given each job. Most jobs of a queue want the same, which is looked at once."""
    known: dict[tuple[str, int | None, bool], Sequence[int]] = {}
    results = {}
    for job in queue:
        wish = (repr(job.requires), job.machine_id, job.trusted)
        if wish not in known:
            known[wish] = [bench.machine_id for bench in benches if may_take(job, bench)]
        results[job.id] = known[wish]
    return results


def _by_turns(
    machine_id: int,
    queue: Sequence[WaitingJob],
    durations: Mapping[tuple[int, Work], float],
    used_s: Mapping[tuple[int, int], float],
) -> Iterator[WaitingJob]:
    """Jobs in the order in which one machine is given them: the next is of the project that it worked least for.

    As in `leases.claim`, a priority above the usual one counts among the jobs of its project alone.
    """
    used = {job.work[0]: used_s.get((machine_id, job.work[0]), 0.0) for job in queue}
    for _, alike in groupby(enumerate(queue), key=lambda placed: min(placed[1].priority, 0)):
        waiting: dict[int, deque[tuple[int, WaitingJob]]] = defaultdict(deque)
        for placed in alike:
            waiting[placed[1].work[0]].append(placed)
        heads = [(used[project], *jobs.popleft()) for project, jobs in waiting.items()]
        heapq.heapify(heads)
        while heads:
            _, _, job = heapq.heappop(heads)
            yield job
            project = job.work[0]
            used[project] += durations.get((machine_id, job.work), _UNKNOWN_S)
            if waiting[project]:
                heapq.heappush(heads, (used[project], *waiting[project].popleft()))


def _play(
    benches: Sequence[QueueMachine],
    fitting: Mapping[int, Sequence[WaitingJob]],
    durations: Mapping[tuple[int, Work], float],
) -> dict[int, tuple[float, int]]:
    """The start and machine of each job. Every machine walks its own list once, so that it costs jobs x machines."""
    free = [(bench.free_in_s, bench.machine_id) for bench in benches if bench.free_in_s is not None and bench.offers]
    heapq.heapify(free)
    next_of = {bench.machine_id: iter(fitting[bench.machine_id]) for bench in benches}
    planned: dict[int, tuple[float, int]] = {}
    while free:
        at_s, machine_id = heapq.heappop(free)
        job = next((job for job in next_of[machine_id] if job.id not in planned), None)
        if job is None:
            continue
        planned[job.id] = (at_s, machine_id)
        takes_s = durations.get((machine_id, job.work))
        if takes_s is not None:
            heapq.heappush(free, (at_s + takes_s, machine_id))
    return planned


def _why(job: WaitingJob, benches: Sequence[QueueMachine], takers: Sequence[int]) -> Forecast | None:
    """The reason why no agent can take the job (yet); None if one can."""
    if not job.trusted and not job.approved:
        return Forecast("approval", "Commit of a fork: an administrator must approve the job.")
    if takers and job.pauses_s > 0:
        return Forecast("pause", PAUSED, starts_in_s=job.pauses_s)
    if takers:
        return None
    mine = [bench for bench in benches if job.machine_id in {None, bench.machine_id}]
    if not mine:
        pinned = job.machine_id is not None
        return Forecast("nobody", "No agent runs on the machine that it requires." if pinned else NO_AGENT)
    return _obstacle(job, mine, f"Only {mine[0].name} may take it, " if job.machine_id is not None else None)


NO_AGENT = "No agent is enrolled: start one."
PAUSED = "It starts after a pause: an attempt failed, or its machine has no time left for it today."


def _obstacle(job: WaitingJob, mine: Sequence[QueueMachine], only: str | None) -> Forecast:
    """The obstacle between a job and the machines that may have it; `only` begins the sentence where that is one."""
    if any(_offers(bench.offers, job) and bench.accepts_untrusted for bench in mine):
        words = "and its agent has no sandbox" if only else "No suitable agent has a sandbox"
        return Forecast("trust", f"{only or ''}{words}, which jobs of forks need: start one with --isolation sandbox.")
    if any(_offers(bench.offers, job) for bench in mine):
        words = "and it accepts no untrusted jobs." if only else "No suitable machine accepts jobs of forks."
        return Forecast("trust", f"{only or ''}{words}")
    refusing = next((bench for bench in mine if bench.refusal), None)
    if refusing is not None and not any(bench.offers for bench in mine):
        words = "and it takes no jobs" if only else f"{refusing.name} takes no jobs"
        return Forecast("refused", f"{only or ''}{words}: {refusing.refusal}")
    silent = [bench.name for bench in mine if _offers(bench.away, job)]
    if silent:
        words = "and it is silent." if only else f"All suitable agents are silent: {', '.join(silent)}."
        return Forecast("silent", f"{only or ''}{words}")
    labels = labels_in_words(with_device(job.requires))
    words = f"and its agents lack the labels {labels}." if only else f"No agent has the labels it requires: {labels}."
    return Forecast("labels", f"{only or ''}{words}")


def _offers(offers: Sequence[Mapping[str, Any]], job: WaitingJob) -> bool:
    return any(suits(labels, job.requires) for labels in offers)


def labels_in_words(labels: Mapping[str, Any]) -> str:
    """Labels as `--label` takes them: gpu=h200, device=cpu."""
    return ", ".join(f"{name}={value}" for name, value in labels.items())


def _turn(ahead: int, starts_in_s: float | None) -> str:
    if starts_in_s == 0:
        return "A machine is free."
    return f"{ahead} {'job is' if ahead == 1 else 'jobs are'} before it." if ahead else "Next in the queue."
